#include "training/request/flag_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/text.h"
#include "data/parse_data.h"
#include "system/files.h"
#include "training/request/choose_training.h"

namespace cputrain::training {
namespace {

/// A flag of this start, or one that a row below says in other words.
bool is_said_otherwise(const std::string& name) {
  for (const char* start : {"out", "overwrite", "end-with", "resume"}) {
    if (name == start) return true;
  }
  return std::ranges::any_of(training_rows(), [&](const FlagRow& row) {
    const bool either =
        row.kind == FlagRow::Kind::yes_or_no && (name == row.name || name == "no-" + row.name);
    return row.holds && (either || name == row.rival);
  });
}

/// A flag that was given, in the type of its row: a number, true, or the text of any other value.
nlohmann::ordered_json typed(const TrainingFlags& flags, const std::string& name,
                             const std::string& text) {
  if (flags.switches.contains(name)) return true;
  const auto row = std::ranges::find(training_rows(), name, &FlagRow::name);
  if (row == training_rows().end()) return text;
  const nlohmann::ordered_json value = row->get(flags);
  return value.is_number() || value.is_boolean() ? value : nlohmann::ordered_json(text);
}

}  // namespace

FlagRow& FlagRow::recorded() {
  holds = [get = get](const TrainingSpec& spec) { return get(spec.flags); };
  return *this;
}

std::string FlagRow::spelling(const TrainingFlags& flags) const {
  const nlohmann::ordered_json value = get(flags);
  if (value.is_string()) return value;
  return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
}

std::string FlagRows::join_words(const std::vector<std::string>& words) { return join(words, "|"); }

nlohmann::ordered_json effective_flags(const TrainingSpec& spec) {
  nlohmann::ordered_json flags;
  for (const auto& [name, value] : spec.flags.given) {
    if (!is_said_otherwise(name)) flags[name] = typed(spec.flags, name, value);
  }
  for (const FlagRow& row : training_rows()) {
    const nlohmann::ordered_json value = row.holds ? row.holds(spec) : nullptr;
    if (value.is_null()) continue;
    if (row.kind == FlagRow::Kind::yes_or_no) {
      flags[(value == true ? "" : "no-") + row.name] = true;
    } else {
      flags[row.name] = value;
    }
  }
  optim::for_figures(spec.optimizer.rule,
                     [&](const char* name, auto figure) { flags[name] = figure; });
  return flags;
}

nlohmann::ordered_json from_any_folder(nlohmann::ordered_json flags) {
  for (const char* name : {"weights", "timeline", "out"}) {
    if (flags.contains(name)) flags[name] = system::absolute_path(flags[name]);
  }
  if (flags.contains("data")) flags["data"] = data::absolute_data_spec(flags["data"]);
  return flags;  // a model's file is absolute already (ModelEntry::spec)
}

nlohmann::ordered_json recorded_flags(const TrainingSpec& spec) {
  nlohmann::ordered_json flags = effective_flags(spec);
  const std::string& first =
      spec.flags.first_weights.empty() ? spec.flags.weights : spec.flags.first_weights;
  if (!first.empty()) flags["weights"] = first;
  return from_any_folder(std::move(flags));
}

}  // namespace cputrain::training
