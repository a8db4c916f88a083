#include "job/open_training.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/json_text.h"
#include "core/version.h"
#include "job/run_folder.h"
#include "model/model_json.h"

namespace cputrain {
namespace {

/// Everything that must be the same on all ranks before the first step.
std::string identity(const TrainingSpec& spec, const DataSource& source, const Graph& graph,
                     int micro_batch) {
  nlohmann::ordered_json flags = effective_flags(spec);
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
void check_target(const TrainingSpec& spec, const DataSource& source) {
  if (!spec.flags.target_accuracy || !source.validation.empty()) return;
  fail(ExitCode::usage,
       fmt::format(
           "--target-accuracy {:g} is that of validation, and the data keeps no image for it "
           "(--validation-split {:g}, {} images for training; it would never be reached); "
           "leave it out, or keep images for validation",
           *spec.flags.target_accuracy, spec.flags.validation_split.value_or(kValidationSplit),
           source.train.size()));
}

}  // namespace

OpenedTraining open_training(const TrainingFlags& flags, const Services& services) {
  TrainingSpec spec = choose_training(flags);
  Session session = start_session(flags, services);
  fit_to_ranks(spec, session.communicator->size());
  DataSource source = services.data.open(spec.flags.data_request(spec.seed));
  say_data(session, source);
  const int classes = classes_of(spec, source);
  Graph graph = build_graph(spec, classes);
  const int micro_batch = training_micro_batch(spec, session, graph);
  check_agreement(session, "program, flags or data", identity(spec, source, graph, micro_batch));
  check_target(spec, source);
  return {std::move(spec), std::move(session), std::move(source),
          classes,         std::move(graph),   micro_batch};
}

}  // namespace cputrain
