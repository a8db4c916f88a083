#include "training/run/taken_over.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "checkpoint/folder.h"
#include "checkpoint/state_file.h"
#include "core/error.h"
#include "core/text.h"
#include "training/run/training_identity.h"
#include "training/weights/named_weights.h"

namespace cputrain::training {
namespace {

/// Whether a way of summing goes with what is asked for now. One that does not would be refused
/// with advice about a flag that was not given.
bool suits(const Session& session, const TrainingFlags& flags,
           const comm::AllreduceChoice& before) {
  using Scheme = comm::AllreduceChoice::Scheme;
  using Devices = comm::AllreduceChoice::Devices;
  if (flags.reproducible) return false;
  // NCCL is taken again where all ranks still can, and there may be other GPUs now, or none.
  if (before.devices != Devices::automatic) return false;
  if (flags.shard_dense.value_or(false) && before.scheme != Scheme::slices) return false;
  return session.backend->memory().is_host() || before.scheme == Scheme::replicas;
}

std::string allreduce_of(const Session& session, const TrainingSpec& spec,
                         const std::filesystem::path& checkpoint) {
  if (checkpoint.empty()) return {};
  const nlohmann::ordered_json facts = checkpoint::read_facts(checkpoint);
  const nlohmann::ordered_json& training = facts.at("training");
  const std::string none = "none", asked = exchange::to_text(spec.flags.compress);
  const bool as_before = (training.contains("compress") ? training.at("compress")
                                                        : nlohmann::ordered_json(none)) == asked;
  const bool alike = as_before && facts.at("ranks") == session.communicator->size() &&
                     facts.at("nodes") == session.nodes.nodes();
  const std::string before = facts.at("allreduce");
  return alike && suits(session, spec.flags, comm::parse_allreduce(before)) ? before : "";
}

std::string exif_of(const Session& session, const TrainingSpec& spec, const Start& start) {
  if (start.checkpoint.empty()) return {};
  const nlohmann::ordered_json training = checkpoint::read_facts(start.checkpoint).at("training");
  const auto exif = training.find("exif");
  if (exif == training.end() || !exif->is_string()) return {};
  if (start.goes_on && !spec.flags.exif && *exif == word_of(data::Exif::ignore)) {
    say(session, "This training goes on with --exif ignore, as its images were read so far");
  }
  return exif->get<std::string>();
}

/// What a training chose for itself, as it stands in its checkpoint; empty where nothing does. Says
/// that it goes on so, where it would now be another one by itself.
std::string choice_of(const Session& session, const Start& start, const char* flag, bool given,
                      const std::string& standard) {
  if (start.checkpoint.empty()) return {};
  const nlohmann::ordered_json training = checkpoint::read_facts(start.checkpoint).at("training");
  const auto found = training.find(flag);
  if (found == training.end() || !found->is_string()) return {};
  const auto before = found->get<std::string>();
  if (start.goes_on && !given && before != standard) {
    say(session, fmt::format("This training goes on with --{0} {1}, as its images were resized so "
                             "far",
                             flag, printable(before)));
  }
  return before;
}

/// As config.json has it, which is right from any folder; else as it was named.
std::string first_weights_in(const std::filesystem::path& checkpoint) {
  const nlohmann::ordered_json training = checkpoint::read_facts(checkpoint).at("training");
  const auto found = training.find(kFirstWeights);
  if (found == training.end() || !found->is_string()) return {};
  const std::string recorded = recorded_weights(checkpoint.parent_path());
  return recorded.empty() ? name_of_weights(found->get<std::string>()) : recorded;
}

/// Name of the weights, then name, image size and --normalize of the model, a line each, for all
/// ranks. Of a name with a line break only the first line arrives.
std::string in_lines(const BegunWith& begun) {
  std::string lines = split(begun.weights, '\n').front();
  if (begun.model) {
    lines += fmt::format("\n{}\n{}\n{}", begun.model->name, begun.model->image_size,
                         begun.model->normalize);
  }
  return lines;
}

BegunWith from_lines(const std::string& text) {
  const std::vector<std::string> lines = split(text, '\n');
  BegunWith begun{.weights = lines.at(0)};
  if (lines.size() == 4) begun.model = DescribedModel{lines[1], std::stoi(lines[2]), lines[3]};
  return begun;
}

/// The fit of that text; nothing for any other.
std::optional<data::Fit> fit_named(const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return data::parse_fit(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

BegunWith begun_with(const std::filesystem::path& checkpoint) {
  if (checkpoint.empty()) return {};
  BegunWith begun{.weights = first_weights_in(checkpoint)};
  if (!begun.weights.empty()) begun.model = described_model(checkpoint / checkpoint::kModelName);
  return begun;
}

TrainingSpec with_first_weights(const BegunWith& begun, TrainingSpec spec) {
  if (begun.weights.empty()) return spec;
  TrainingFlags& flags = spec.flags;
  if (begun.model && !flags.was_given("model")) follow(flags, *begun.model);
  flags.first_weights = begun.weights;
  return choose_training(flags);
}

void take_over(const Session& session, const TrainingSpec& spec, Start& start) {
  comm::Communicator& ranks = *session.communicator;
  start.allreduce = ranks.gather(allreduce_of(session, spec, start.checkpoint)).front();
  start.exif = value_named<data::Exif>(ranks.gather(exif_of(session, spec, start)).front());
  const std::string resize = choice_of(session, start, "resize", spec.flags.resize.has_value(),
                                       std::string(word_of(spec.resize.way)));
  const std::string fit =
      choice_of(session, start, "fit", spec.flags.fit.has_value(), to_text(spec.resize.fit));
  start.resize = value_named<data::Resize>(ranks.gather(resize).front());
  start.fit = fit_named(ranks.gather(fit).front());
  start.begun_with = from_lines(ranks.gather(in_lines(begun_with(start.checkpoint))).front());
}

TrainingSpec with_choices_of(const Start& start, TrainingSpec spec) {
  spec = with_first_weights(start.begun_with, std::move(spec));
  comm::AllreduceChoice& asked = spec.flags.allreduce;
  if (start.goes_on && !start.allreduce.empty() && asked == comm::AllreduceChoice{}) {
    asked = comm::parse_allreduce(start.allreduce);
  }
  if (!spec.flags.exif) spec.flags.exif = start.exif;
  if (!spec.flags.resize) spec.flags.resize = start.resize;
  if (!spec.flags.fit) spec.flags.fit = start.fit;
  spec.resize = {spec.flags.resize.value_or(spec.resize.way),
                 spec.flags.fit.value_or(spec.resize.fit)};
  return spec;
}

}  // namespace cputrain::training
