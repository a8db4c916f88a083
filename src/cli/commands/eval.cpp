#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/evaluate.h"
#include "cli/commands/inputs.h"
#include "cli/commands/predictions_text.h"
#include "cli/flags/flag_groups.h"
#include "cli/idle_flags.h"
#include "core/csv.h"
#include "core/json_text.h"
#include "core/text.h"
#include "data/classes/class_names.h"
#include "data/dataset.h"
#include "system/print.h"
#include "training/request/flag_grammars.h"
#include "training/run/run_folder.h"
#include "training/weights/past_data.h"
#include "weights/description.h"

namespace cputrain::commands {
namespace {

using Json = nlohmann::ordered_json;

struct EvalOptions : cli::Options {
  std::string confusion, page;
  bool flips = false;        ///< --tta
  std::string run;           ///< that wrote the weights; empty for none
  bool data_of_run = false;  ///< it takes the data of that run
};

void check_confusion(const EvalOptions& options, const weights::ModelDescription& model) {
  if (options.confusion.empty() || model.classes.size() <= loop::PredictionCounts::kMostInMatrix)
    return;
  fail(ExitCode::usage,
       "--confusion {}: the model has {} classes (a matrix is made for at most {}); leave it out, "
       "--json has the figures by class",
       options.confusion, model.classes.size(), loop::PredictionCounts::kMostInMatrix);
}

/// "cuda tf32", as beside figures of training.
std::string computed_on(const EvalOptions& options, const training::Session& session) {
  return training::backend_in_figures(session.backend->name(), word_of(options.precision));
}

void warn_of_preprocessing(const EvalOptions& options, const training::Session& session,
                           const weights::ModelDescription& model, const data::DataSource& source) {
  const weights::Preprocessing then = weights::preprocessing_of(model);
  weights::Preprocessing here = then;
  if (const auto packed = source.dataset->ready_form()) {
    here = {.resize = packed->resize, .exif = packed->exif, .packed = true};
  } else if (data::may_have_exif(options.data_or_synthetic())) {
    here.exif = source.exif;
  }
  for (const std::string& line : training::preprocessing_differences(options.weights, then, here)) {
    training::warn(session, line);
  }
}

/// What is looked at, and why, in one line.
training::EvaluationPart open_part(const EvalOptions& options, const training::Session& session,
                                   const weights::ModelDescription& model) {
  training::EvaluationPart part = training::open_to_evaluate(options, session, model);
  training::say_data(session, part.source);
  const std::string line = fmt::format(
      "Evaluating {} of {}{}{} on {}: {} ({})", with_commas(part.source.validation.size(), "image"),
      options.data_or_synthetic(),
      options.data_of_run ? ", the data of the run " + options.run : "",
      options.flips ? ", each with its mirror image," : "", computed_on(options, session),
      part.name == "all" ? "all of them" : part.name + " part", part.why);
  part.doubtful ? training::warn(session, line) : training::say(session, line);
  warn_of_preprocessing(options, session, model, part.source);
  const std::string missing = data::missing_classes(part.source, part.source.validation);
  if (!missing.empty()) {
    training::say(session, "No image of {} is among them: figures do not show these", missing);
  }
  return part;
}

/// The loss is that of the images alone, as other programs print it.
std::string penalty_text(const Evaluation& result) {
  if (!(result.penalty > 0)) return "";  // NaN is none
  return fmt::format(" - L2 penalty of all weights, not in the loss: {:.4f}", result.penalty);
}

constexpr std::size_t kMostColumns = 10;  // predictions side by side

std::uint64_t whole(double count) { return static_cast<std::uint64_t>(count); }

std::string ratio_text(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.4f}", *ratio) : "n/a";
}

/// A line a class: its images, how many of them were predicted rightly, how often that prediction
/// is right, the harmonic mean of both, and, for a few classes, how often each prediction was
/// given. Empty for many classes.
std::string predictions_table(const loop::PredictionCounts& counts,
                              const std::vector<std::string>& classes) {
  if (counts.classes() > kMostInTable) return "";
  std::size_t name_width = 5, column = 5;
  std::vector<std::string> names;
  for (const std::string& name : classes) {
    names.push_back(escaped(name));
    const std::size_t width = columns_of(names.back());
    name_width = std::clamp(width, name_width, kWidestName);
    column = std::clamp(width, column, std::size_t{12});
  }
  const bool with_predictions = counts.classes() <= kMostColumns;
  std::string text = fmt::format("{:<{}}{:>10}{:>10}{:>11}{:>9}", "class", name_width, "images",
                                 "recall", "precision", "F1");
  if (with_predictions) text += "  predicted:";
  for (std::size_t c = 0; with_predictions && c < counts.classes(); ++c) {
    const std::size_t width = std::min(columns_of(names[c]), column);
    text += "  " + std::string(column - width, ' ') + in_columns(names[c], width);
  }
  text += '\n';
  for (std::size_t row = 0; row < counts.classes(); ++row) {
    const loop::ClassCounts of = counts.of_class(row);
    text += fmt::format("{}{:>10}{:>10}{:>11}{:>9}", in_columns(names[row], name_width),
                        whole(of.images), ratio_text(of.recall()), ratio_text(of.precision()),
                        ratio_text(of.f1()));
    if (with_predictions) text += "           ";
    for (std::size_t c = 0; with_predictions && c < counts.classes(); ++c) {
      text += fmt::format("  {:>{}}", whole(counts.cell(row, c)), column);
    }
    text += '\n';
  }
  return text;
}

/// Means over the classes, as scikit-learn's, and the area under the ROC curve of two.
std::string averages_text(const Evaluation& result) {
  std::string text;
  if (const auto macro = result.counts.macro_averages()) {
    text = fmt::format("Macro averages (n/a is 0): recall {:.4f} - precision {:.4f} - F1 {:.4f}\n",
                       macro->recall, macro->precision, macro->f1);
  }
  if (result.counts.classes() == 2)
    text += fmt::format("Area under the ROC curve (AUC): {}\n", ratio_text(result.auc));
  return text;
}

/// {"top_5_accuracy":..., "macro_recall":..., "macro_precision":..., "macro_f1":..., "classes":
/// [{"name":..., "images":..., "accuracy":..., "precision":..., "f1":..., "answers":...}],
/// "confusion":[[...]]}; null where nothing was counted, and no top_5_accuracy of five classes or
/// fewer.
Json predictions_json(const loop::PredictionCounts& counts,
                      const std::vector<std::string>& classes) {
  Json by_class = Json::array(), matrix = Json::array();
  for (std::size_t row = 0; row < counts.classes(); ++row) {
    const loop::ClassCounts of = counts.of_class(row);
    by_class.push_back({{"name", classes[row]},
                        {"images", whole(of.images)},
                        {"accuracy", known(of.recall())},
                        {"precision", known(of.precision())},
                        {"f1", known(of.f1())},
                        {"answers", whole(of.predictions)}});
    Json line = Json::array();
    for (std::size_t c = 0; counts.has_matrix() && c < counts.classes(); ++c) {
      line.push_back(whole(counts.cell(row, c)));
    }
    if (counts.has_matrix()) matrix.push_back(std::move(line));
  }
  Json result;
  if (const auto top_five = counts.top_five()) result["top_5_accuracy"] = *top_five;
  const auto macro = counts.macro_averages();
  result["macro_recall"] = macro ? Json(macro->recall) : Json();
  result["macro_precision"] = macro ? Json(macro->precision) : Json();
  result["macro_f1"] = macro ? Json(macro->f1) : Json();
  result["not_numbers"] = whole(counts.undecided());
  result["classes"] = std::move(by_class);
  if (counts.has_matrix()) result["confusion"] = std::move(matrix);
  return result;
}

/// The matrix as CSV: a row an actual class, a column a prediction; needs has_matrix().
std::string confusion_csv(const loop::PredictionCounts& counts,
                          const std::vector<std::string>& classes) {
  std::vector<std::string> head{"actual\\answer"};
  head.insert(head.end(), classes.begin(), classes.end());
  head = csv_header(head);
  std::string text = join(head, ",") + "\r\n";
  for (std::size_t row = 0; row < counts.classes(); ++row) {
    text += head[row + 1];
    for (std::size_t c = 0; c < counts.classes(); ++c) {
      text += fmt::format(",{}", whole(counts.cell(row, c)));
    }
    text += "\r\n";
  }
  return text;
}

void print_evaluation(const Evaluation& result, const std::vector<std::string>& classes) {
  const std::string images = counted(whole(result.tally.images), "image");
  system::print_lines(predictions_table(result.counts, classes));
  system::print_lines(averages_text(result));
  if (result.counts.undecided() > 0) {
    system::print("NaN, which counts as wrong: {}\n",
                  counted(static_cast<std::uint64_t>(result.counts.undecided()), "prediction"));
  }
  const auto accuracy = result.tally.accuracy();
  const double loss = result.tally.mean_loss();
  const std::string penalty = penalty_text(result);
  if (!accuracy) {
    system::print("{} - loss: {:.4f}{}\n", images, loss, penalty);
    return;
  }
  const auto top_five = result.counts.top_five();
  system::print("{} - loss: {:.4f} - accuracy: {:.4f}{}{}\n", images, loss, *accuracy,
                top_five ? fmt::format(" - top-5 accuracy: {:.4f}", *top_five) : "", penalty);
}

/// For `report`. The run may be another user's, which takes nothing from what was asked for.
void log_in_run(const EvalOptions& options, const training::Session& session,
                const training::EvaluationFacts& facts) {
  if (options.run.empty() || facts.images < 1) return;
  const std::filesystem::path file =
      std::filesystem::path(options.run) / training::kEvaluationsName;
  try {
    training::log_evaluation(file, facts);
    training::say(session, "Added to {}, which `report` reads", file.string());
  } catch (const Error& error) {
    training::warn(session, "a report of the run will not have this evaluation: {}", error.what());
  }
}

Json evaluation_json(const EvalOptions& options, const training::Session& session,
                     const weights::ModelDescription& model, const std::string& part,
                     const Evaluation& evaluation) {
  const compute::Tally& tally = evaluation.tally;
  Json result{{"loss", tally.mean_loss()},
              {"penalty", evaluation.penalty},
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
  if (options.flips) result["tta"] = kFlip;
  if (evaluation.counts.classes() == 2) result["auc"] = known(evaluation.auc);
  result.update(predictions_json(evaluation.counts, model.classes));
  return result;
}

void write_confusion(const EvalOptions& options, const training::Session& session,
                     const loop::PredictionCounts& counts, const std::vector<std::string>& names) {
  if (options.confusion.empty()) return;
  training::write_result(session, options.confusion, confusion_csv(counts, names));
}

/// The page, and the line in the run's folder.
void write_facts(const EvaluationPage& page, const EvalOptions& options,
                 const training::Session& session, const weights::ModelDescription& model,
                 const training::EvaluationPart& part, const Evaluation& evaluation) {
  training::EvaluationFacts facts = evaluation_facts(options, session, model, evaluation);
  facts.part = part.name;
  if (options.flips) facts.looks = kFlip;
  facts.backend = computed_on(options, session);
  if (part.doubtful) facts.doubt = part.why;
  if (!options.page.empty()) training::write_result(session, options.page, page(facts));
  facts.data = data::absolute_data_spec(facts.data);  // the report may be made anywhere
  log_in_run(options, session, facts);
}

void take_run(EvalOptions& options, const std::filesystem::path& run) {
  options.run = run.string();
  if (!run.empty() && options.data.empty()) options.data_of_run = take_data_of_run(options, run);
}

void add_eval_flags(cli::Flags& f, EvalOptions& c, const cli::CommandLineChoices& choices) {
  add_weights_flag(f, c);
  add_data_flags(f, c, false);
  f.default_is("data", "that of the run which wrote the weights");
  f.reword("validation-split",
           "part kept for validation where the data has none of its own (0: look at all) [its "
           "test part, else what training held out or its own validation part, else all]");
  f.reword("limit-val", "look at most at N images");
  f.default_is("exif", "as training did");
  f.reword("seed", "number that decides the validation part [that of training]");
  add_stall_flags(f, c);
  add_inference_flags(f, c, choices);
  add_json_flag(f, c.json);
  add_test_time_flag(f, c.flips);
  f.text("confusion", c.confusion, "FILE",
         "write the confusion matrix as CSV (-: to standard output, and nothing else there)");
  f.text("page", c.page, "FILE",
         "write one HTML page: confusion matrix, figures by class, and the images that were most "
         "surely predicted wrong (-: to standard output, and nothing else there)");
}

void check_eval(const EvalOptions& options, const cli::CommandLineChoices&) {
  check_weights_named(options);
  if (options.limit_val == 0u)
    fail(ExitCode::usage, "--limit-val 0: eval needs at least one image");
}

ExitCode run_eval(const EvaluationPage& page, const EvalOptions& options,
                  const training::Services& services) {
  weights::ModelDescription model = weights::read_description(options.weights);
  check_confusion(options, model);
  const training::Session session = training::start_session(options, services);
  ask_for_data(session, options);
  const training::EvaluationPart part = open_part(options, session, model);
  model.classes = part.source.dataset->classes();  // nameless ones have the data's names
  const Evaluation evaluation = evaluate_images(options, session, model, part.source, options.flips,
                                                options.page.empty() ? 0 : training::kMostErrors);
  if (evaluation.least_likely > 0) {
    training::warn(
        session,
        "--tta {}: the probabilities of the right classes of {} are too small for a float (each "
        "counts with a loss of 87.3, so the mean is too small); leave it out for the whole loss",
        kFlip, counted(static_cast<std::uint64_t>(evaluation.least_likely), "image"));
  }
  const bool prints = options.prints() && options.page != "-" && options.confusion != "-";
  if (session.leads() && prints) print_evaluation(evaluation, model.classes);
  const auto result = evaluation_json(options, session, model, part.name, evaluation);
  training::write_json(session, options.json, result);
  write_confusion(options, session, evaluation.counts, model.classes);
  if (session.leads()) write_facts(page, options, session, model, part, evaluation);
  if (evaluation.tally.is_number()) return ExitCode::ok;
  training::warn(session, "the loss is NaN or infinite, so the predictions mean nothing");
  return ExitCode::failed;
}

}  // namespace

std::unique_ptr<cli::Command> make_eval(EvaluationPage page) {
  return cli::make_command<EvalOptions>(
      {.help =
           {.name = "eval",
            .summary = "loss and accuracy of saved weights on a data set",
            .about = "Prints loss, accuracy and a table by class of saved weights, on images that "
                     "training did not learn from.",
            .examples = {{"cputrain eval --weights runs/first",
                          "Evaluates on the images that training held out for validation."},
                         {"cputrain eval --weights runs/first/weights.safetensors --data photos "
                          "--confusion confusion.csv",
                          "Also writes the confusion matrix as CSV."},
                         {"cputrain eval --weights runs/first/weights.safetensors --data photos "
                          "--page errors.html",
                          "Also writes a page with the matrix and the images most surely predicted "
                          "wrong."}},
            .common = {"weights", "data", "validation-split", "limit-val", "tta", "confusion",
                       "page", "json", "backend", "threads"},
            .others = "evaluate,evaluation,test,val,valid,validate,score",
            .advice = "use eval: cputrain eval --weights RUN"},
       .task = {.trains = false, .evaluates = true},
       .add_flags = add_eval_flags,
       .check = check_eval,
       .why_idle = [](const EvalOptions& options, const std::string& flag) -> std::string {
         if (flag == "limit-train") return "in eval, which learns nothing";
         return why_idle_in_training(options, flag, {options.backend});
       },
       .run = std::bind_front(run_eval, std::move(page)),
       .results =
           [](const EvalOptions& o) {
             return std::vector{std::pair("--confusion", o.confusion), std::pair("--page", o.page),
                                std::pair("--json", o.json)};
           },
       .needs_weights = true,
       .take_run_of_weights = take_run});
}

}  // namespace cputrain::commands
