#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/print.h"
#include "cli/session.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "train/evaluate.h"
#include "train/penalty.h"
#include "train/weights.h"

namespace cputrain {
namespace {

/// Labels must mean the same in the data and in the weights; the network may know more classes.
void check_classes(const ModelDescription& model, const DataSource& source) {
  const auto& known = model.classes;
  const auto& found = source.dataset->classes();
  if (found.size() <= known.size() && std::equal(found.begin(), found.end(), known.begin())) return;
  fail(ExitCode::data,
       fmt::format("the data has the classes {} where the weights know {} (accuracy would mean "
                   "nothing); use data with the same class names",
                   join(source.dataset->classes(), ", "), join(model.classes, ", ")));
}

}  // namespace

int run_eval(const Config& config, const Services& services) {
  const ModelDescription model = read_description(config.weights);
  const Session session = start_session(config, services);
  DataRequest request = config.data_request(config.seed.value_or(model.seed));
  request.validation_split = config.validation_split.value_or(model.validation_split);
  DataSource source = services.data.open(request);
  check_classes(model, source);
  const bool all = source.validation.empty();
  if (all) std::swap(source.validation, source.train);
  source.train.clear();
  say(session, fmt::format("{}; evaluating {} {} images", source.description,
                           with_commas(source.validation.size()), all ? "(all)" : "validation"));
  const DecodedData data =
      decode_with_progress(session, services, config, source, model.graph.image(), model.resize);

  const int rank = session.communicator->rank(), ranks = session.communicator->size();
  const int micro_batch = micro_batch_size(config, session);
  const BatchPlan plan(data.validation.size(), static_cast<std::size_t>(micro_batch) * ranks,
                       micro_batch, rank, ranks);
  const Inference inference = make_inference(session, model.graph, plan.sizes());
  if (session.leads()) load_weights(config.weights, *inference.program, inference.weights);
  session.communicator->broadcast(inference.weights.bytes(), 0);
  const auto batches = services.data.batches(data.validation, plan, {.shuffle = false});
  Tally tally = evaluate(*inference.program, *batches, plan, *session.communicator);
  tally.loss +=
      tally.images * l2_penalty(*session.backend, inference.program->layout(), inference.weights);
  const auto images = static_cast<std::uint64_t>(tally.images);
  if (session.leads() && config.json != "-") {
    print("{} images - loss: {:.4f} - accuracy: {:.4f}\n", images, tally.mean_loss(),
          tally.accuracy());
  }
  const nlohmann::ordered_json result{
      {"loss", tally.mean_loss()},  {"accuracy", tally.accuracy()},
      {"images", images},           {"correct", static_cast<std::uint64_t>(tally.correct)},
      {"skipped", data.bad.size()}, {"model", model.model},
      {"weights", config.weights},  {"data", config.data}};
  write_result(session, config.json, json_text(result) + "\n");
  return static_cast<int>(ExitCode::ok);
}

}  // namespace cputrain
