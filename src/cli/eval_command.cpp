#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/answers_text.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/print.h"
#include "core/text.h"
#include "train/answers.h"
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

void check_confusion(const Config& config, const ModelDescription& model) {
  if (config.confusion.empty() || model.classes.size() <= AnswerCounts::kMostInMatrix) return;
  fail(ExitCode::usage,
       fmt::format("--confusion {}: the model has {} classes (a matrix is made for at most {}); "
                   "leave it out, --json has the figures by class",
                   config.confusion, model.classes.size(), AnswerCounts::kMostInMatrix));
}

/// The pictures to evaluate: the validation part, or all where there is none.
DataSource open_validation(const Config& config, const Services& services, const Session& session,
                           const ModelDescription& model) {
  DataRequest request = config.data_request(config.seed.value_or(model.seed));
  request.validation_split = config.validation_split.value_or(model.validation_split);
  DataSource source = services.data.open(request);
  check_classes(model, source);
  const bool all = source.validation.empty();
  if (all) std::swap(source.validation, source.train);
  source.train.clear();
  say(session, fmt::format("{}; evaluating {} {} images", source.description,
                           with_commas(source.validation.size()), all ? "(all)" : "validation"));
  return source;
}

struct Evaluation {
  Tally tally;
  AnswerCounts counts;
  std::size_t skipped;  ///< pictures that could not be read

  /// Answers that are no numbers count as wrong.
  double correct() const { return counts.undecided() > 0 ? counts.correct() : tally.correct; }
  double accuracy() const { return tally.images > 0 ? correct() / tally.images : 0; }
};

Evaluation evaluate_pictures(const Config& config, const Services& services, const Session& session,
                             const ModelDescription& model, const DataSource& source) {
  const DecodedData data =
      decode_with_progress(session, services, config, source, model.graph.image(), model.resize);
  Communicator& communicator = *session.communicator;
  const int ranks = communicator.size(), micro_batch = micro_batch_size(config, session);
  const BatchPlan plan(data.validation.size(), static_cast<std::size_t>(micro_batch) * ranks,
                       micro_batch, communicator.rank(), ranks);
  const Inference inference = make_inference(session, model.graph, plan.sizes());
  if (session.leads()) load_weights(config.weights, *inference.program, inference.weights);
  communicator.broadcast(inference.weights.bytes(), 0);
  const auto batches = services.data.batches(data.validation, plan, {.shuffle = false});

  AnswerCounts counts(model.classes.size());
  const Progress progress = progress_line(session, "Evaluating");
  std::size_t done = 0;  // by all ranks, if they are as quick as this one
  Tally tally = evaluate(*inference.program, *batches, plan, communicator,
                         [&](const auto& labels, const auto& outputs) {
                           counts.add(labels, outputs);
                           done += labels.size() * static_cast<std::size_t>(ranks);
                           if (progress && done < plan.samples()) progress(done, plan.samples());
                         });
  if (progress) progress(plan.samples(), plan.samples());
  tally.loss +=
      tally.images * l2_penalty(*session.backend, inference.program->layout(), inference.weights);
  counts.sum(communicator);
  return {tally, std::move(counts), data.bad.size()};
}

void print_evaluation(const Evaluation& result, const std::vector<std::string>& classes) {
  const auto images = static_cast<std::uint64_t>(result.tally.images);
  print_lines(answers_table(result.counts, classes));
  if (result.counts.undecided() > 0) {
    print("{:.0f} answers are not numbers and count as wrong\n", result.counts.undecided());
  }
  print("{} images - loss: {:.4f} - accuracy: {:.4f}\n", images, result.tally.mean_loss(),
        result.accuracy());
  const double among_five = images > 0 ? result.counts.among_five() / result.counts.images() : 0;
  print("Accuracy @ 1 = {:.4f} Accuracy @ 5 = {:.4f} [{} examples]\n", result.accuracy(),
        among_five, images);
}

}  // namespace

int run_eval(const Config& config, const Services& services) {
  const ModelDescription model = read_description(config.weights);
  check_confusion(config, model);
  const Session session = start_session(config, services);
  const DataSource source = open_validation(config, services, session, model);
  const Evaluation evaluation = evaluate_pictures(config, services, session, model, source);
  if (session.leads() && config.json != "-") print_evaluation(evaluation, model.classes);
  const Tally& tally = evaluation.tally;
  nlohmann::ordered_json result{{"loss", tally.mean_loss()},
                                {"accuracy", evaluation.accuracy()},
                                {"images", static_cast<std::uint64_t>(tally.images)},
                                {"correct", static_cast<std::uint64_t>(evaluation.correct())},
                                {"skipped", evaluation.skipped},
                                {"model", model.model},
                                {"weights", config.weights},
                                {"data", config.data}};
  result.update(answers_json(evaluation.counts, model.classes));
  write_result(session, config.json, json_text(result) + "\n");
  if (!config.confusion.empty()) {
    std::vector<std::string> names = model.classes;  // a file keeps them, people see them escaped
    if (config.confusion == "-") std::ranges::transform(names, names.begin(), escaped);
    write_result(session, config.confusion, confusion_csv(evaluation.counts, names));
  }
  return static_cast<int>(ExitCode::ok);
}

}  // namespace cputrain
