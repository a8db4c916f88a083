#include "cli/commands/evaluate.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "core/version.h"
#include "exchange/basic_exchange.h"
#include "loop/replicas.h"
#include "system/clock.h"
#include "training/plan/image_place.h"
#include "training/plan/training_plan.h"
#include "training/session/inference.h"

namespace cputrain::commands {
namespace {

/// What a smaller mean of probabilities counts as: a loss of 87.3. The program's own losses have no
/// such bound, but a mean of probabilities is made of floats.
constexpr float kLeastProbability = std::numeric_limits<float>::min();

/// Rows of probabilities, and what they say about images of these labels.
void add_predictions(std::span<const float> outputs, std::span<const std::int32_t> labels,
                     compute::Tally& tally) {
  const std::size_t width = outputs.size() / labels.size();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = outputs.subspan(i * width, width);
    const auto truth = static_cast<std::size_t>(labels[i]);
    const float probability = loop::class_probabilities(row)[truth];
    const float counted = probability < kLeastProbability ? kLeastProbability : probability;
    tally.loss -= std::log(static_cast<double>(counted));  // NaN stays
    compute::count_prediction(row, truth, tally);
  }
}

/// As loop::evaluate(), of images and their mirror images: the second source gives the images of
/// the first one, mirrored. Predictions are the means of both probabilities, and the loss is that
/// of these means.
compute::Tally evaluate_mirrored(compute::Program& program, data::BatchSource& batches,
                                 data::BatchSource& mirrored, const data::BatchPlan& plan,
                                 comm::Communicator& communicator,
                                 const loop::PredictionObserver& observer) {
  constexpr compute::Pass kPass{.phase = compute::Phase::evaluate, .probabilities = true};
  communicator.pulse().at(comm::Phase::validate);
  batches.seek(0, 0);
  mirrored.seek(0, 0);
  compute::Tally tally;
  for (std::size_t step = 0; step < plan.steps(); ++step) {
    for (int k = 0; k < plan.micro_batches(step); ++k) {
      const compute::MicroBatch& batch = batches.next();
      program.forward(batch, kPass);
      const auto plain = program.probabilities();
      std::vector<float> mean(plain.begin(), plain.end());
      program.forward(mirrored.next(), kPass);
      communicator.pulse().moved();
      if (batch.size() == 0) continue;
      loop::average_outputs(mean, program.probabilities());
      add_predictions(mean, batch.labels, tally);
      observer(batch.labels, mean);
    }
  }
  (void)program.tally();  // the single passes' sums
  for (data::BatchSource* const source : {&batches, &mirrored}) {
    const std::string lost = loop::lost_input(*source, communicator);
    if (!lost.empty()) fail(ExitCode::data, lost);
  }
  comm::sum_numbers(communicator, tally.sums());
  return tally;
}

std::vector<loop::ClassCounts> class_predictions(const loop::PredictionCounts& counts,
                                                 const std::vector<std::string>& classes) {
  std::vector<loop::ClassCounts> list;
  for (std::size_t c = 0; c < counts.classes(); ++c) {
    list.push_back(counts.of_class(c));
    list.back().name = classes[c];
  }
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

std::vector<training::WrongImage> wrong_images(const training::Services& services,
                                               const std::vector<loop::WrongPrediction>& errors,
                                               const data::ImageSet& set,
                                               const data::Dataset& dataset,
                                               const std::vector<std::string>& classes) {
  std::vector<training::WrongImage> images;
  std::vector<std::uint8_t> space(set.image.size());
  for (const loop::WrongPrediction& error : errors) {
    const auto place = static_cast<std::size_t>(error.image);
    const std::uint8_t* pixels = set.pixels_of(place, space);
    data::Thumbnail picture = services.data.thumbnail(
        {pixels, set.image.size()}, set.image,
        set.turns.empty() ? data::Turn::none : set.turns[place], training::kLongestSide);
    images.push_back({std::move(picture), dataset.name(set.samples[place]), classes[error.truth],
                      classes[error.prediction], error.probability, error.probability_of_truth});
  }
  return images;
}

/// How many images of these labels have so small a probability that their loss is cut.
double least_likely(std::span<const std::int32_t> labels, std::span<const float> outputs) {
  if (labels.empty()) return 0;
  const std::size_t width = outputs.size() / labels.size();
  double count = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = loop::class_probabilities(outputs.subspan(i * width, width));
    count += row[static_cast<std::size_t>(labels[i])] < kLeastProbability;
  }
  return count;
}

}  // namespace

Evaluation evaluate_images(const training::TrainingFlags& flags, const training::Session& session,
                           const weights::ModelDescription& model, const data::DataSource& source,
                           bool flips, std::size_t most_errors) {
  const data::DecodedData data =
      training::decode_images(session, flags, source, {model.graph.image(), model.resize});
  comm::Communicator& communicator = *session.communicator;
  const int ranks = communicator.size(), micro_batch = training::micro_batch_size(flags, session);
  const data::BatchPlan plan(data.validation.size(), static_cast<std::size_t>(micro_batch) * ranks,
                             micro_batch, communicator.rank(), ranks);
  const training::Inference inference =
      training::make_inference(session, model.graph, plan.sizes());
  if (session.leads()) training::load_to_use(flags.weights, inference);
  exchange::broadcast_array(communicator, session.backend->memory(), inference.weights(), 0);
  data::BatchRequest request{.shuffle = false, .feeder = session.backend->feeder()};
  const auto batches = session.services.data.batches(data.validation, plan, request);
  request.mirror = true;
  const auto mirrored =
      flips ? session.services.data.batches(data.validation, plan, request) : nullptr;

  training::reached(session, comm::Phase::validate);
  loop::PredictionCounts counts(model.classes.size());
  loop::RocScores roc;
  loop::SurestErrors errors(most_errors);
  const std::vector<std::uint64_t> order = loop::evaluation_order(plan);
  double cut_losses = 0;
  std::size_t predicted = 0;  // of this rank's
  const data::OnProgress progress = training::progress_line(session, "Evaluating");
  std::size_t done = 0;  // by all ranks, if they are as quick as this one
  const loop::PredictionObserver observer = [&](const auto& labels, const auto& outputs) {
    counts.add(labels, outputs);
    if (counts.classes() == 2) roc.add(labels, outputs);
    errors.add(std::span(order).subspan(predicted), labels, outputs);
    if (mirrored) cut_losses += least_likely(labels, outputs);
    predicted += labels.size();
    done += labels.size() * static_cast<std::size_t>(ranks);
    if (progress && done < plan.samples()) progress(done, plan.samples());
  };
  compute::Program& program = *inference.program;
  compute::Tally tally =
      mirrored ? evaluate_mirrored(program, *batches, *mirrored, plan, communicator, observer)
               : loop::evaluate(program, *batches, plan, communicator, observer);
  if (progress) progress(plan.samples(), plan.samples());
  compute::Tally with_penalty = tally;
  loop::add_loss_of_weights(with_penalty, *session.backend, inference.program->layout(),
                            inference.weights(), communicator);
  const double penalty = with_penalty.mean_loss() - tally.mean_loss();
  if (std::isnan(with_penalty.loss))
    tally.loss = with_penalty.loss;  // layers can hide such weights
  counts.sum(communicator);
  const auto auc = counts.classes() == 2 ? roc.area(communicator) : std::nullopt;
  comm::sum_numbers(communicator, std::array{&cut_losses});
  const auto surest = errors.gather(communicator);
  auto images = session.leads() ? wrong_images(session.services, surest, data.validation,
                                               *source.dataset, model.classes)
                                : std::vector<training::WrongImage>{};
  return {tally, std::move(counts), auc, data.bad.size(), std::move(images), cut_losses, penalty};
}

training::EvaluationFacts evaluation_facts(const training::TrainingFlags& flags,
                                           const training::Session& session,
                                           const weights::ModelDescription& model,
                                           const Evaluation& evaluation) {
  const compute::Tally& tally = evaluation.tally;
  const loop::PredictionCounts& counts = evaluation.counts;
  training::EvaluationFacts facts;
  const Shape image = model.graph.image();
  facts.model = fmt::format("{} at {}x{}", model.model, image.height, image.width);
  facts.weights = flags.weights;
  facts.data = flags.data_or_synthetic();
  facts.cpu = session.machine.cpu_model;
  facts.cores = session.machine.cores;
  facts.date = system::today();
  facts.build =
      fmt::format("cputrain {}{}{}", kVersion, session.services.program_build.empty() ? "" : ", ",
                  session.services.program_build);
  facts.command = command_line(training::typed_command(session, flags));
  facts.images = tally.images;
  facts.correct = counts.correct();
  facts.loss = tally.mean_loss();
  facts.penalty = evaluation.penalty;
  facts.accuracy = tally.accuracy();
  facts.undecided = counts.undecided();
  facts.among_five = counts.top_five();
  facts.classes = class_predictions(counts, model.classes);
  facts.macro = counts.macro_averages();
  facts.auc = evaluation.auc;
  facts.matrix = matrix_of(counts);
  facts.surest_errors = evaluation.surest_errors;
  return facts;
}

}  // namespace cputrain::commands
