#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "cells/cells.h"
#include "cli/commands.h"
#include "cli/commands/answers_text.h"
#include "cli/commands/data_question.h"
#include "cli/commands/evaluation_facts.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "data/data_spec.h"
#include "exchange/broadcast_array.h"
#include "job/evaluation_part.h"
#include "job/session/decode_images.h"
#include "job/session/inference.h"
#include "report/evaluation/evaluation_log.h"
#include "run/run_folder.h"
#include "system/print.h"
#include "train/evaluation/answers.h"
#include "train/evaluation/evaluate.h"
#include "train/weights/weights.h"

namespace cputrain::cli {
namespace {

void check_confusion(const Config& config, const train::ModelDescription& model) {
  if (config.confusion.empty() || model.classes.size() <= train::AnswerCounts::kMostInMatrix)
    return;
  fail(ExitCode::usage,
       fmt::format("--confusion {}: the model has {} classes (a matrix is made for at most {}); "
                   "leave it out, --json has the figures by class",
                   config.confusion, model.classes.size(), train::AnswerCounts::kMostInMatrix));
}

/// "cuda tf32", as beside figures of training.
std::string computed_on(const Config& config, const job::Session& session) {
  return cells::backend_in_figures(session.backend->name(), std::string(word_of(config.precision)));
}

/// What is looked at, and why, in one line.
job::EvaluationPart open_part(const Config& config, const job::Session& session,
                              const train::ModelDescription& model) {
  job::EvaluationPart part = job::open_to_evaluate(config, session.services, model);
  const std::string images = with_commas(part.source.validation.size());
  job::say_data(session, part.source);
  const std::string line = fmt::format(
      "Evaluating {} image{} of {}{} on {}: {} ({})", images, images == "1" ? "" : "s",
      config.data_or_synthetic(), config.data_of_run ? ", the data of the run " + config.run : "",
      computed_on(config, session), part.name == "all" ? "all of them" : part.name + " part",
      part.why);
  part.doubtful ? job::warn(session, line) : job::say(session, line);
  return part;
}

struct Evaluation {
  compute::Tally tally;
  train::AnswerCounts counts;
  std::size_t skipped;                            ///< images that could not be read
  std::vector<report::WrongImage> surest_errors;  ///< on rank 0, where a page is to show them
};

Evaluation evaluate_images(const Config& config, const job::Session& session,
                           const train::ModelDescription& model, const data::DataSource& source) {
  const data::DecodedData data =
      job::decode_images(session, config, source, {model.graph.image(), model.resize});
  comm::Communicator& communicator = *session.communicator;
  const int ranks = communicator.size(), micro_batch = job::micro_batch_size(config, session);
  const data::BatchPlan plan(data.validation.size(), static_cast<std::size_t>(micro_batch) * ranks,
                             micro_batch, communicator.rank(), ranks);
  const job::Inference inference = job::make_inference(session, model.graph, plan.sizes());
  if (session.leads()) job::load_to_use(config.weights, inference);
  exchange::broadcast_array(communicator, session.backend->memory(), inference.weights(), 0);
  const auto batches = session.services.data.batches(
      data.validation, plan, {.shuffle = false, .feeder = session.backend->feeder()});

  job::reached(session, comm::Phase::validate);
  train::AnswerCounts counts(model.classes.size());
  train::SurestErrors errors(config.page.empty() ? 0 : report::kMostErrors);
  const std::vector<std::uint64_t> order = train::evaluation_order(plan);
  std::size_t answered = 0;  // of this rank's
  const data::Progress progress = job::progress_line(session, "Evaluating");
  std::size_t done = 0;  // by all ranks, if they are as quick as this one
  compute::Tally tally =
      train::evaluate(*inference.program, *batches, plan, communicator,
                      [&](const auto& labels, const auto& outputs) {
                        counts.add(labels, outputs);
                        errors.add(std::span(order).subspan(answered), labels, outputs);
                        answered += labels.size();
                        done += labels.size() * static_cast<std::size_t>(ranks);
                        if (progress && done < plan.samples()) progress(done, plan.samples());
                      });
  if (progress) progress(plan.samples(), plan.samples());
  train::add_loss_of_weights(tally, *session.backend, inference.program->layout(),
                             inference.weights(), communicator);
  counts.sum(communicator);
  const auto surest = errors.gather(communicator);
  auto images = session.leads() ? wrong_images(session.services, surest, data.validation,
                                               *source.dataset, model.classes)
                                : std::vector<report::WrongImage>{};
  return {tally, std::move(counts), data.bad.size(), std::move(images)};
}

void print_evaluation(const Evaluation& result, const std::vector<std::string>& classes) {
  const auto images = static_cast<std::uint64_t>(result.tally.images);
  system::print_lines(answers_table(result.counts, classes));
  if (result.counts.undecided() > 0) {
    system::print("{:.0f} answers are NaN and count as wrong\n", result.counts.undecided());
  }
  const auto accuracy = result.tally.accuracy();
  if (!accuracy) {
    system::print("{} images - loss: {:.4f}\n", images, result.tally.mean_loss());
    return;
  }
  system::print("{} images - loss: {:.4f} - accuracy: {:.4f}\n", images, result.tally.mean_loss(),
                *accuracy);
  const auto top_five = result.counts.top_five();
  system::print("Accuracy @ 1 = {:.4f}{} [{} examples]\n", *accuracy,
                top_five ? fmt::format(" Accuracy @ 5 = {:.4f}", *top_five) : "", images);
}

/// For `report`. The run may be another user's, which takes nothing from what was asked for.
void log_in_run(const Config& config, const job::Session& session,
                const report::EvaluationFacts& facts) {
  if (config.run.empty() || facts.images < 1) return;
  const std::filesystem::path file = std::filesystem::path(config.run) / run::kEvaluationsName;
  try {
    report::log_evaluation(file, facts);
    job::say(session, fmt::format("Added to {}, which `report` reads", file.string()));
  } catch (const Error& error) {
    job::warn(session,
              fmt::format("a report of the run will not have this evaluation: {}", error.what()));
  }
}

nlohmann::ordered_json evaluation_json(const Config& config, const job::Session& session,
                                       const train::ModelDescription& model,
                                       const std::string& part, const Evaluation& evaluation) {
  const compute::Tally& tally = evaluation.tally;
  nlohmann::ordered_json result{{"loss", tally.mean_loss()},
                                {"accuracy", known(tally.accuracy())},
                                {"part", part},
                                {"images", static_cast<std::uint64_t>(tally.images)},
                                {"correct", static_cast<std::uint64_t>(tally.correct)},
                                {"skipped", evaluation.skipped},
                                {"model", model.model},
                                {"weights", config.weights},
                                {"data", config.data},
                                {"backend", session.backend->name()},
                                {"precision", word_of(config.precision)}};
  result.update(answers_json(evaluation.counts, model.classes));
  return result;
}

void write_confusion(const Config& config, const job::Session& session,
                     const train::AnswerCounts& counts, std::vector<std::string> names) {
  if (config.confusion.empty()) return;
  // A file keeps names, people see them escaped.
  if (config.confusion == "-") std::ranges::transform(names, names.begin(), escaped);
  job::write_result(session, config.confusion, confusion_csv(counts, names));
}

/// The page, and the line in the run's folder.
void write_facts(const Config& config, const job::Session& session,
                 const train::ModelDescription& model, const job::EvaluationPart& part,
                 const Evaluation& evaluation) {
  report::EvaluationFacts facts =
      evaluation_facts(config, session, model, evaluation.tally, evaluation.counts);
  facts.part = part.name;
  facts.backend = computed_on(config, session);
  if (part.doubtful) facts.doubt = part.why;
  facts.surest_errors = evaluation.surest_errors;
  if (!config.page.empty()) job::write_result(session, config.page, report::evaluation_page(facts));
  facts.data = data::absolute_data_spec(facts.data);  // the report may be made anywhere
  log_in_run(config, session, facts);
}

}  // namespace

int run_eval(const Config& config, const job::Services& services) {
  const train::ModelDescription model = train::read_description(config.weights);
  check_confusion(config, model);
  const job::Session session = job::start_session(config, services);
  ask_for_data(session, config);
  const job::EvaluationPart part = open_part(config, session, model);
  const Evaluation evaluation = evaluate_images(config, session, model, part.source);
  const bool says = config.json != "-" && config.page != "-";
  if (session.leads() && says) print_evaluation(evaluation, model.classes);
  const auto result = evaluation_json(config, session, model, part.name, evaluation);
  job::write_result(session, config.json, json_text(result) + "\n");
  write_confusion(config, session, evaluation.counts, model.classes);
  if (session.leads()) write_facts(config, session, model, part, evaluation);
  if (evaluation.tally.is_number()) return static_cast<int>(ExitCode::ok);
  job::warn(session, "the loss is NaN or infinite, so what the weights answer means nothing");
  return static_cast<int>(ExitCode::failed);
}

}  // namespace cputrain::cli
