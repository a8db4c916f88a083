#include "cli/commands/evaluation_facts.h"

#include <fmt/format.h>

#include "cells/cells.h"
#include "core/shell_words.h"
#include "core/version.h"

namespace cputrain::cli {
namespace {

/// The command as it was typed.
std::string command_text(const Config& config, int ranks) {
  std::vector<std::string> words;
  if (ranks > 1) words = {"mpirun", "-np", std::to_string(ranks)};
  words.insert(words.end(), {config.program, config.command});
  for (const auto& [flag, value] : config.given) {
    words.push_back("--" + flag);
    if (value != "true") words.push_back(value);
  }
  return command_line(words);
}

std::string machine_words(const placement::Machine& machine) {
  return fmt::format("{}{}{} core{}", machine.cpu_model, machine.cpu_model.empty() ? "" : ", ",
                     machine.cores, machine.cores == 1 ? "" : "s");
}

std::vector<report::ClassAnswers> class_answers(const train::AnswerCounts& counts,
                                                const std::vector<std::string>& classes) {
  std::vector<report::ClassAnswers> list;
  for (std::size_t c = 0; c < counts.classes(); ++c)
    list.push_back({classes[c], counts.actual(c), counts.answered(c), counts.correct(c)});
  return list;
}

std::vector<std::vector<double>> matrix_of(const train::AnswerCounts& counts) {
  std::vector<std::vector<double>> matrix;
  for (std::size_t row = 0; counts.has_matrix() && row < counts.classes(); ++row) {
    auto& line = matrix.emplace_back();
    for (std::size_t column = 0; column < counts.classes(); ++column)
      line.push_back(counts.cell(row, column));
  }
  return matrix;
}

}  // namespace

std::vector<report::WrongImage> wrong_images(const job::Services& services,
                                             const std::vector<train::WrongAnswer>& errors,
                                             const data::ImageSet& set,
                                             const data::Dataset& dataset,
                                             const std::vector<std::string>& classes) {
  std::vector<report::WrongImage> images;
  std::vector<std::uint8_t> space(set.image.size());
  for (const train::WrongAnswer& error : errors) {
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
                      classes[error.answer], error.probability, error.probability_of_truth});
  }
  return images;
}

report::EvaluationFacts evaluation_facts(const Config& config, const job::Session& session,
                                         const train::ModelDescription& model,
                                         const compute::Tally& tally,
                                         const train::AnswerCounts& counts) {
  report::EvaluationFacts facts;
  const Shape image = model.graph.image();
  facts.model = fmt::format("{} at {}x{}", model.model, image.height, image.width);
  facts.weights = config.weights;
  facts.data = config.data.empty() ? "synthetic" : config.data;
  facts.machine = machine_words(session.machine);
  facts.date = cells::today();
  facts.build =
      fmt::format("cputrain {}{}{}", kVersion, session.services.program_build.empty() ? "" : ", ",
                  session.services.program_build);
  facts.command = command_text(config, session.communicator->size());
  facts.images = tally.images;
  facts.correct = counts.correct();
  facts.loss = tally.mean_loss();
  facts.accuracy = tally.accuracy();
  facts.undecided = counts.undecided();
  constexpr std::size_t kFive = 5;
  if (model.classes.size() > kFive && counts.images() > 0)
    facts.among_five = counts.among_five() / counts.images();
  facts.classes = class_answers(counts, model.classes);
  facts.matrix = matrix_of(counts);
  return facts;
}

}  // namespace cputrain::cli
