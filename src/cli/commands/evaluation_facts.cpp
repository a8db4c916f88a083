#include "cli/commands/evaluation_facts.h"

#include <fmt/format.h>

#include "cells/cells.h"
#include "core/shell_words.h"
#include "core/version.h"
#include "job/session/typed_command.h"
#include "report/grid_tables.h"

namespace cputrain::cli {
namespace {

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

report::EvaluationFacts evaluation_facts(const job::TrainingFlags& flags,
                                         const job::Session& session,
                                         const train::ModelDescription& model,
                                         const compute::Tally& tally,
                                         const train::AnswerCounts& counts) {
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
  facts.command = command_line(job::typed_command(session, flags));
  facts.images = tally.images;
  facts.correct = counts.correct();
  facts.loss = tally.mean_loss();
  facts.accuracy = tally.accuracy();
  facts.undecided = counts.undecided();
  facts.among_five = counts.top_five();
  facts.classes = class_answers(counts, model.classes);
  facts.matrix = matrix_of(counts);
  return facts;
}

}  // namespace cputrain::cli
