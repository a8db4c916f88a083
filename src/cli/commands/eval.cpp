#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "cli/commands.h"
#include "cli/commands/predictions_text.h"
#include "cli/flags/flag_groups.h"
#include "cli/flags/idle_flags.h"
#include "cli/weights_choice.h"
#include "core/json_text.h"
#include "core/shell_words.h"
#include "core/text.h"
#include "core/version.h"
#include "data/data_spec.h"
#include "exchange/broadcast_array.h"
#include "loop/evaluation/evaluate.h"
#include "loop/evaluation/predictions.h"
#include "loop/evaluation/surest_errors.h"
#include "loop/weights/weights.h"
#include "scaling/cells/cells.h"
#include "scaling/report/evaluation/evaluation_log.h"
#include "scaling/report/evaluation/evaluation_page.h"
#include "scaling/report/grid_tables.h"
#include "system/print.h"
#include "training/evaluation_part.h"
#include "training/micro_batch.h"
#include "training/run/run_folder.h"
#include "training/session/decode_images.h"
#include "training/session/inference.h"
#include "training/session/typed_command.h"

namespace cputrain::cli {
namespace {

std::vector<report::ClassPredictions> class_predictions(const loop::PredictionCounts& counts,
                                                        const std::vector<std::string>& classes) {
  std::vector<report::ClassPredictions> list;
  for (std::size_t c = 0; c < counts.classes(); ++c)
    list.push_back({classes[c], counts.actual(c), counts.predicted(c), counts.correct(c)});
  return list;
}

std::vector<std::vector<double>> matrix_of(const loop::PredictionCounts& counts) {
  std::vector<std::vector<double>> matrix;
  for (std::size_t row = 0; counts.has_matrix() && row < counts.classes(); ++row) {
    auto& line = matrix.emplace_back();
    for (std::size_t column = 0; column < counts.classes(); ++column)
      line.push_back(counts.cell(row, column));
  }
  return matrix;
}

std::vector<report::WrongImage> wrong_images(const training::Services& services,
                                             const std::vector<loop::WrongPrediction>& errors,
                                             const data::ImageSet& set,
                                             const data::Dataset& dataset,
                                             const std::vector<std::string>& classes) {
  std::vector<report::WrongImage> images;
  std::vector<std::uint8_t> space(set.image.size());
  for (const loop::WrongPrediction& error : errors) {
    const auto place = static_cast<std::size_t>(error.image);
    const std::uint8_t* pixels = set.pixels_of(place, space);
    const data::Thumbnail small = services.data.thumbnail(
        {pixels, set.image.size()}, set.image,
        set.turns.empty() ? data::Turn::none : set.turns[place], report::kLongestSide);
    report::Picture picture{
        small.type,
        std::string(reinterpret_cast<const char*>(small.file.data()), small.file.size()),
        small.width, small.height};
    images.push_back({std::move(picture), dataset.name(set.samples[place]), classes[error.truth],
                      classes[error.prediction], error.probability, error.probability_of_truth});
  }
  return images;
}

report::EvaluationFacts evaluation_facts(const training::TrainingFlags& flags,
                                         const training::Session& session,
                                         const loop::ModelDescription& model,
                                         const compute::Tally& tally,
                                         const loop::PredictionCounts& counts) {
  report::EvaluationFacts facts;
  const Shape image = model.graph.image();
  facts.model = fmt::format("{} at {}x{}", model.model, image.height, image.width);
  facts.weights = flags.weights;
  facts.data = flags.data_or_synthetic();
  facts.machine = report::processor_text(session.machine.cpu_model, session.machine.cores);
  facts.date = cells::today();
  facts.build =
      fmt::format("cputrain {}{}{}", kVersion, session.services.program_build.empty() ? "" : ", ",
                  session.services.program_build);
  facts.command = command_line(training::typed_command(session, flags));
  facts.images = tally.images;
  facts.correct = counts.correct();
  facts.loss = tally.mean_loss();
  facts.accuracy = tally.accuracy();
  facts.undecided = counts.undecided();
  facts.among_five = counts.top_five();
  facts.classes = class_predictions(counts, model.classes);
  facts.matrix = matrix_of(counts);
  return facts;
}

struct EvalOptions : Options {
  std::string confusion, page;
  std::string run;           ///< that wrote the weights; empty for none
  bool data_of_run = false;  ///< it takes the data of that run
};

void check_confusion(const EvalOptions& options, const loop::ModelDescription& model) {
  if (options.confusion.empty() || model.classes.size() <= loop::PredictionCounts::kMostInMatrix)
    return;
  fail(ExitCode::usage,
       fmt::format("--confusion {}: the model has {} classes (a matrix is made for at most {}); "
                   "leave it out, --json has the figures by class",
                   options.confusion, model.classes.size(), loop::PredictionCounts::kMostInMatrix));
}

/// "cuda tf32", as beside figures of training.
std::string computed_on(const EvalOptions& options, const training::Session& session) {
  return cells::backend_in_figures(session.backend->name(),
                                   std::string(word_of(options.precision)));
}

/// What is looked at, and why, in one line.
training::EvaluationPart open_part(const EvalOptions& options, const training::Session& session,
                                   const loop::ModelDescription& model) {
  training::EvaluationPart part = training::open_to_evaluate(options, session.services, model);
  const std::string images = with_commas(part.source.validation.size());
  training::say_data(session, part.source);
  const std::string line =
      fmt::format("Evaluating {} image{} of {}{} on {}: {} ({})", images, images == "1" ? "" : "s",
                  options.data_or_synthetic(),
                  options.data_of_run ? ", the data of the run " + options.run : "",
                  computed_on(options, session),
                  part.name == "all" ? "all of them" : part.name + " part", part.why);
  part.doubtful ? training::warn(session, line) : training::say(session, line);
  return part;
}

struct Evaluation {
  compute::Tally tally;
  loop::PredictionCounts counts;
  std::size_t skipped;                            ///< images that could not be read
  std::vector<report::WrongImage> surest_errors;  ///< on rank 0, where a page is to show them
};

Evaluation evaluate_images(const EvalOptions& options, const training::Session& session,
                           const loop::ModelDescription& model, const data::DataSource& source) {
  const data::DecodedData data =
      training::decode_images(session, options, source, {model.graph.image(), model.resize});
  comm::Communicator& communicator = *session.communicator;
  const int ranks = communicator.size(), micro_batch = training::micro_batch_size(options, session);
  const data::BatchPlan plan(data.validation.size(), static_cast<std::size_t>(micro_batch) * ranks,
                             micro_batch, communicator.rank(), ranks);
  const training::Inference inference =
      training::make_inference(session, model.graph, plan.sizes());
  if (session.leads()) training::load_to_use(options.weights, inference);
  exchange::broadcast_array(communicator, session.backend->memory(), inference.weights(), 0);
  const auto batches = session.services.data.batches(
      data.validation, plan, {.shuffle = false, .feeder = session.backend->feeder()});

  training::reached(session, comm::Phase::validate);
  loop::PredictionCounts counts(model.classes.size());
  loop::SurestErrors errors(options.page.empty() ? 0 : report::kMostErrors);
  const std::vector<std::uint64_t> order = loop::evaluation_order(plan);
  std::size_t predicted = 0;  // of this rank's
  const data::OnProgress progress = training::progress_line(session, "Evaluating");
  std::size_t done = 0;  // by all ranks, if they are as quick as this one
  compute::Tally tally =
      loop::evaluate(*inference.program, *batches, plan, communicator,
                     [&](const auto& labels, const auto& outputs) {
                       counts.add(labels, outputs);
                       errors.add(std::span(order).subspan(predicted), labels, outputs);
                       predicted += labels.size();
                       done += labels.size() * static_cast<std::size_t>(ranks);
                       if (progress && done < plan.samples()) progress(done, plan.samples());
                     });
  if (progress) progress(plan.samples(), plan.samples());
  loop::add_loss_of_weights(tally, *session.backend, inference.program->layout(),
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
  system::print_lines(predictions_table(result.counts, classes));
  if (result.counts.undecided() > 0) {
    system::print("{:.0f} predictions are NaN and count as wrong\n", result.counts.undecided());
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
void log_in_run(const EvalOptions& options, const training::Session& session,
                const report::EvaluationFacts& facts) {
  if (options.run.empty() || facts.images < 1) return;
  const std::filesystem::path file =
      std::filesystem::path(options.run) / training::kEvaluationsName;
  try {
    report::log_evaluation(file, facts);
    training::say(session, fmt::format("Added to {}, which `report` reads", file.string()));
  } catch (const Error& error) {
    training::warn(session, fmt::format("a report of the run will not have this evaluation: {}",
                                        error.what()));
  }
}

nlohmann::ordered_json evaluation_json(const EvalOptions& options, const training::Session& session,
                                       const loop::ModelDescription& model, const std::string& part,
                                       const Evaluation& evaluation) {
  const compute::Tally& tally = evaluation.tally;
  nlohmann::ordered_json result{{"loss", tally.mean_loss()},
                                {"accuracy", known(tally.accuracy())},
                                {"part", part},
                                {"images", static_cast<std::uint64_t>(tally.images)},
                                {"correct", static_cast<std::uint64_t>(tally.correct)},
                                {"skipped", evaluation.skipped},
                                {"model", model.model},
                                {"weights", options.weights},
                                {"data", options.data},
                                {"backend", session.backend->name()},
                                {"precision", word_of(options.precision)}};
  result.update(predictions_json(evaluation.counts, model.classes));
  return result;
}

void write_confusion(const EvalOptions& options, const training::Session& session,
                     const loop::PredictionCounts& counts, std::vector<std::string> names) {
  if (options.confusion.empty()) return;
  // A file keeps names, people see them escaped.
  if (options.confusion == "-") std::ranges::transform(names, names.begin(), escaped);
  training::write_result(session, options.confusion, confusion_csv(counts, names));
}

/// The page, and the line in the run's folder.
void write_facts(const EvalOptions& options, const training::Session& session,
                 const loop::ModelDescription& model, const training::EvaluationPart& part,
                 const Evaluation& evaluation) {
  report::EvaluationFacts facts =
      evaluation_facts(options, session, model, evaluation.tally, evaluation.counts);
  facts.part = part.name;
  facts.backend = computed_on(options, session);
  if (part.doubtful) facts.doubt = part.why;
  facts.surest_errors = evaluation.surest_errors;
  if (!options.page.empty())
    training::write_result(session, options.page, report::evaluation_page(facts));
  facts.data = data::absolute_data_spec(facts.data);  // the report may be made anywhere
  log_in_run(options, session, facts);
}

class EvalCommand final : public CommandWith<EvalOptions> {
 public:
  EvalCommand() : CommandWith({.trains = false, .evaluates = true}) {}

  CommandEntry help() const override {
    const std::string weights = "runs/first/weights.safetensors";
    return {
        .name = "eval",
        .summary = "loss and accuracy of saved weights on a data set",
        .about =
            "Prints loss, accuracy and a table by class of saved weights, on images that "
            "training did not learn from.",
        .examples = {{"cputrain eval --weights runs/first",
                      "Evaluates on the images that training kept for validation."},
                     {"cputrain eval --weights " + weights +
                          " --data photos --confusion confusion.csv",
                      "Also writes the confusion matrix as CSV."},
                     {"cputrain eval --weights " + weights + " --data photos --page errors.html",
                      "Also writes a page with the matrix and the images most surely predicted "
                      "wrong."}},
        .common = {"weights", "data", "validation-split", "limit-val", "confusion", "page", "json",
                   "backend", "threads"}};
  }

  void add_flags(Flags& f, const CommandLineChoices& choices) override {
    EvalOptions& c = options_;
    add_weights_flag(f, c);
    add_data_flags(f, c, false);
    f.default_is("data", "that of the run which wrote the weights");
    f.reword("validation-split",
             "part kept for validation where the data has none of its own; 0: look at all [its "
             "test part, else what training kept or its own validation part, else all]");
    f.reword("limit-val", "look at most at N images");
    f.default_is("exif", "as training did");
    f.reword("seed", "number that decides the validation part [that of training]");
    add_stall_flags(f, c);
    add_inference_flags(f, c, choices);
    add_json_flag(f, c.json);
    f.text("confusion", c.confusion, "FILE",
           "write the confusion matrix as CSV (-: to standard output)");
    f.text("page", c.page, "FILE",
           "write one HTML page: confusion matrix, figures by class, and the images that were most "
           "surely predicted wrong (-: to standard output)");
  }

  bool begins_with_weights() const override { return true; }
  void check(const CommandLineChoices&) override {
    check_weights_named(options_);
    if (options_.limit_val == 0u)
      fail(ExitCode::usage, "--limit-val 0: eval needs at least one image");
  }
  std::vector<std::pair<const char*, std::string>> results() override {
    return {
        {"--confusion", options_.confusion}, {"--page", options_.page}, {"--json", options_.json}};
  }
  void choose_files(bool leads) override {
    choose_weights(*this, leads, [this](const std::filesystem::path& run) {
      options_.run = run.string();
      if (!run.empty() && options_.data.empty())
        options_.data_of_run = take_data_of_run(options_, run);
    });
  }
  std::string why_idle(const std::string& flag) const override {
    if (flag == "limit-train") return "in eval, which learns nothing";
    if (flag == "exif") return why_idle_exif(options_);
    return why_idle_option(options_, flag, {options_.backend});
  }

  ExitCode run(const Services& services) override {
    const loop::ModelDescription model = loop::read_description(options_.weights);
    check_confusion(options_, model);
    const training::Session session = training::start_session(options_, services);
    ask_for_data(session, options_);
    const training::EvaluationPart part = open_part(options_, session, model);
    const Evaluation evaluation = evaluate_images(options_, session, model, part.source);
    const bool says = options_.prints() && options_.page != "-";
    if (session.leads() && says) print_evaluation(evaluation, model.classes);
    const auto result = evaluation_json(options_, session, model, part.name, evaluation);
    training::write_result(session, options_.json, json_text(result) + "\n");
    write_confusion(options_, session, evaluation.counts, model.classes);
    if (session.leads()) write_facts(options_, session, model, part, evaluation);
    if (evaluation.tally.is_number()) return ExitCode::ok;
    training::warn(session, "the loss is NaN or infinite, so the predictions mean nothing");
    return ExitCode::failed;
  }
};

}  // namespace

std::unique_ptr<Command> make_eval() { return std::make_unique<EvalCommand>(); }

}  // namespace cputrain::cli
