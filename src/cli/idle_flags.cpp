#include "cli/idle_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/text.h"
#include "data/augment.h"
#include "data/parse_data.h"
#include "training/request/choose_training.h"
#include "training/request/flag_grammars.h"
#include "training/request/training_rows.h"

namespace cputrain::cli {
namespace {

/// Why a flag that was given has no effect; empty where it has one.
using Reason = std::string (*)(const training::TrainingFlags&);

std::string when(bool idle, const char* reason) { return idle ? reason : ""; }

std::string reason_without_checkpoints(const training::TrainingFlags& flags) {
  return when(!flags.safety.takes_checkpoints(),
              "without checkpoints, which --checkpoint-every 0 turns off");
}

std::string reason_of_form(const training::TrainingFlags& flags) {
  return when(data::parse_data_spec(flags.data_or_synthetic()).word == data::kSynthetic,
              "for synthetic images, which are made in their size");
}

std::string reason_of_exif(const training::TrainingFlags& flags) {
  return when(!data::may_have_exif(flags.data_or_synthetic()),
              "for this data, which has no photographs with an EXIF orientation");
}

/// Words with 0 in a list whose other words change images.
std::string reason_of_augment(const training::TrainingFlags& flags) {
  const auto given =
      std::ranges::find(flags.given, "augment", [](const auto& f) { return f.first; });
  if (given == flags.given.end()) return "";
  const std::vector<std::string> idle = data::idle_words(given->second);
  return idle.empty() ? "" : fmt::format("by {} (0 is none of it)", join(idle, " and "));
}

/// What follows from flags alone.
struct Row {
  std::string_view flag;
  Reason reason;
};

constexpr Row kRows[] = {
    {"timeline-steps",
     [](const training::TrainingFlags& f) {
       return when(f.timeline.empty(), "without --timeline FILE, whose steps they are");
     }},
    {"keep", reason_without_checkpoints},
    {"on-checkpoint-failure", reason_without_checkpoints},
    {"resize", reason_of_form},
    {"fit", reason_of_form},
    {"augment", reason_of_augment},
    {"exif", reason_of_exif},
};

/// Whether the training would be the same without the flag, since its value is what holds then.
bool holds_anyway(const training::TrainingFlags& flags, const std::string& name) {
  const auto& rows = training::training_rows();
  const auto row = std::ranges::find(rows, name, &training::FlagRow::name);
  if (row == rows.end()) return false;
  training::TrainingFlags without = flags;
  row->copy(without, {});
  if (!row->holds) {
    const nlohmann::ordered_json value = row->get(flags);
    return !value.is_null() && value == row->get(without);
  }
  try {
    return row->holds(choose_training(flags)) == row->holds(choose_training(without));
  } catch (const Error&) {  // others need it
    return false;
  }
}

}  // namespace

std::string why_idle_option(const training::TrainingFlags& flags, const std::string& flag,
                            const std::vector<std::string>& backends) {
  for (const auto& [backend, options] : flags.options) {
    if (options.contains(flag) && std::ranges::find(backends, backend) == backends.end())
      return "for a --backend other than " + backend;
  }
  return "";
}

std::string why_idle_in_training(const training::TrainingFlags& flags, const std::string& flag,
                                 const std::vector<std::string>& backends) {
  for (const Row& row : kRows) {
    if (row.flag == flag) return row.reason(flags);
  }
  if (flag == "data-on-device")
    return when(std::ranges::none_of(backends, training::is_device),
                "for a --backend that computes on no device");
  return why_idle_option(flags, flag, backends);
}

std::vector<std::string> idle_flags(const Options& options,
                                    const std::function<std::string(const std::string&)>& reason) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : options.given) {
    if (options.from_environment.contains(name)) continue;
    const std::string why = reason(name);
    if (why.empty()) continue;
    if (options.from_config.contains(name) && holds_anyway(options, name)) continue;
    const std::string words = options.switches.contains(name) ? name : name + " " + value;
    lines.push_back(fmt::format("--{} changes nothing {}", words, why));
  }
  return lines;
}

}  // namespace cputrain::cli
