#include "cli/open_training.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/run_folder.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/json_text.h"
#include "core/version.h"
#include "model/model_json.h"

namespace cputrain {
namespace {

/// Everything that must be the same on all ranks before the first step.
std::string identity(const Config& config, const TrainingChoices& choices, const DataSource& source,
                     const Graph& graph, int micro_batch) {
  nlohmann::ordered_json flags = effective_flags(config, choices);
  for (const char* own : {"threads", "io-threads", "bind", "verbose"})
    flags.erase(own);  // may differ
  const std::uint64_t network = Fnv1a().add(json_text(to_json(graph))).value();
  return fmt::format(
      "cputrain {}, {} parameters ({:016x}), data {:016x} ({} + {} samples), {} at once, {}",
      kVersion, graph.parameter_count(), network, source.dataset->fingerprint(),
      source.train.size(), source.validation.size(), micro_batch, json_text(flags));
}

/// A target that is never looked at would be trained for until the last epoch. (Where no image of
/// the validation part can be read, decoding says so, target or not.)
void check_target(const Config& config, const DataSource& source) {
  if (!config.target_accuracy || !source.validation.empty()) return;
  fail(ExitCode::usage,
       fmt::format(
           "--target-accuracy {:g} is that of validation, and the data keeps no image for it "
           "(--validation-split {:g}, {} images for training; it would never be reached); "
           "leave it out, or keep images for validation",
           *config.target_accuracy, config.validation_split.value_or(kValidationSplit),
           source.train.size()));
}

}  // namespace

OpenedTraining open_training(const Config& config, const Services& services) {
  TrainingChoices choices = choose_training(config);
  Session session = start_session(config, services);
  fit_to_ranks(choices, config, session.communicator->size());
  DataSource source = services.data.open(config.data_request(choices.seed));
  say_data(session, source);
  const int classes = classes_of(config, source);
  Graph graph = build_graph(config, choices, classes);
  const int micro_batch = training_micro_batch(config, session, graph, choices);
  check_agreement(session, "program, flags or data",
                  identity(config, choices, source, graph, micro_batch));
  check_target(config, source);
  return {std::move(choices), std::move(session), std::move(source), classes,
          std::move(graph),   micro_batch};
}

}  // namespace cputrain
