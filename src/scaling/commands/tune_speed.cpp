#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "scaling/commands/commands.h"
#include "scaling/tune/speed_ladder.h"
#include "system/clock.h"
#include "training/plan/compiled_training.h"
#include "training/plan/image_place.h"
#include "training/plan/training_memory.h"
#include "training/training.h"

namespace cputrain::commands {
namespace {

/// Ladders of steps, whose sizes the training then has.
class SpeedTuning {
 public:
  SpeedTuning(training::Session& session, training::TrainingSpec& spec, const TuneOptions& options,
              const std::optional<tune::RateRange>& rates)
      : session_(session), spec_(spec), options_(options), rates_(rates) {}

  void run(tune::Findings& to) {
    tune::StepBench bench = open();
    const training::TrainingPlan plan =
        training::plan_training(session_, spec_, bench.classes,
                                training::rank_memory(training::measure_capacities(session_), 0));
    usual_micro_batch_ = plan.chunks ? plan.chunks->images : plan.micro_batch;
    const std::size_t images = bench.data->train.size();
    const std::vector<int> micro_batches = micro_batches_to_try(plan, images, to),
                           batches = batches_to_try(images, to);
    if (!micro_batches.empty()) {
      usual_micro_batch_ = std::min(usual_micro_batch_, micro_batches.back());
    }
    kept_features_ = to.kept_features.value_or(0);
    bench.left = work_of(micro_batches, batches, images);
    if (to.kept_features && !(micro_batches.empty() && batches.empty())) {
      training::say(session_, tune::whole_steps_text(*to.kept_features));
    }
    climb_micro_batches(bench, micro_batches, to);
    climb_batches(bench, batches, to);
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(session_.communicator->size()); }
  std::size_t accumulate() const { return static_cast<std::size_t>(spec_.plan.accumulate); }
  /// For the ladder of batches; a rank's share should fill a pass.
  std::size_t most_batch() const {
    constexpr std::size_t kUsual = 1024, kOfARank = 64;
    if (options_.most_batch) return static_cast<std::size_t>(*options_.most_batch);
    return std::max(kUsual, kOfARank * ranks());
  }

  tune::StepBench open();
  std::vector<int> micro_batches_to_try(const training::TrainingPlan&, std::size_t images,
                                        tune::Findings&) const;
  std::vector<int> batches_to_try(std::size_t images, tune::Findings&) const;
  tune::WorkLeft work_of(const std::vector<int>& micro_batches, const std::vector<int>& batches,
                         std::size_t images) const;
  void climb_micro_batches(tune::StepBench&, const std::vector<int>&, tune::Findings&);
  void climb_batches(tune::StepBench&, const std::vector<int>&, tune::Findings&);

  training::Session& session_;
  training::TrainingSpec& spec_;
  const TuneOptions& options_;
  const std::optional<tune::RateRange>& rates_;
  std::size_t there_ = 0;        ///< images of the whole data
  double decoding_seconds_ = 0;  ///< per image
  double kept_features_ = 0;
  int usual_micro_batch_ = 0;  ///< without the flag
};

tune::StepBench SpeedTuning::open() {
  const system::HeldMemory held = tune::begin_peak();
  const std::size_t batch =
      options_.has_batch() ? spec_.batch : std::max(spec_.batch, most_batch());
  const auto source = std::make_shared<const data::DataSource>(
      open_images(spec_.flags, session_.services, batch * accumulate(), spec_.seed));
  there_ = source->dataset->size();
  training::TrainingSpec form = spec_;
  training::follow_ready_form(form, *source);
  const system::Stopwatch decoding;
  const auto data = std::make_shared<const data::DecodedData>(
      training::decode_images(session_, spec_.flags, *source, training::image_form(form)));
  decoding_seconds_ =
      decoding.seconds() / static_cast<double>(std::max<std::size_t>(1, data->train.size()));
  return {.session = session_,
          .classes = training::classes_of(spec_, *source),
          .source = source,
          .data = data,
          .held_before = held,
          .rounds = options_.repeat,
          .left = {{}, options_.repeat}};
}

/// None where they are not tried, and then why.
std::vector<int> SpeedTuning::micro_batches_to_try(const training::TrainingPlan& plan,
                                                   std::size_t all, tune::Findings& to) const {
  constexpr int kFirst = 4;
  if (plan.spec.flags.micro_batch) {
    to.no_micro_batch = fmt::format("Micro-batch: {}, as it was given.", *spec_.flags.micro_batch);
    return {};
  }
  if (plan.whole_share()) {
    to.no_micro_batch =
        "Micro-batch: not tried, since batch normalization needs all images of a rank at once.";
    return {};
  }
  const std::size_t images = std::min(spec_.batch, all);
  const auto share = static_cast<int>((images + ranks() - 1) / ranks());
  return cells::doubled(std::min(kFirst, share), share);
}

std::vector<int> SpeedTuning::batches_to_try(std::size_t all, tune::Findings& to) const {
  constexpr std::size_t kFirst = 16, kOfARank = 4;
  if (options_.has_batch()) {
    to.no_batch = fmt::format("Batch: {}, as it was given.", spec_.batch);
    return {};
  }
  const std::size_t images = std::max<std::size_t>(1, all / accumulate());
  const std::size_t last = std::min(most_batch(), images);
  const std::size_t first = std::min(std::max(kFirst, std::bit_ceil(kOfARank * ranks())), last);
  return cells::doubled(static_cast<int>(first), static_cast<int>(last));
}

tune::WorkLeft SpeedTuning::work_of(const std::vector<int>& micro_batches,
                                    const std::vector<int>& batches, std::size_t all) const {
  std::vector<tune::LadderLeft> ladders;
  const auto add = [&](const char* flag, const std::vector<int>& sizes, int usual,
                       const auto& images_of) {
    tune::LadderLeft& ladder = ladders.emplace_back(tune::LadderLeft{.flag = flag, .images = {}});
    for (const int size : sizes) ladder.images.push_back(images_of(size));
    if (std::ranges::find(sizes, usual) == sizes.end()) ladder.usual = images_of(usual);
  };
  if (!micro_batches.empty()) {
    const std::size_t images = std::min(spec_.batch * accumulate(), all);
    add("micro-batch", micro_batches, usual_micro_batch_, [&](int) { return images; });
  }
  if (!batches.empty()) {
    // A smaller one than usual is no advice, so that it is compared with a smaller usual one alone.
    const int usual = static_cast<int>(spec_.batch);
    add("batch", batches, usual < batches.back() ? usual : batches.back(),
        [&](int batch) { return static_cast<std::size_t>(batch) * accumulate(); });
  }
  if (!rates_) return {std::move(ladders), options_.repeat};
  const std::size_t largest = batches.empty() ? 0 : static_cast<std::size_t>(batches.back());
  return {std::move(ladders),
          options_.repeat,
          {.steps = rates_->steps,
           .likely_images = spec_.batch * accumulate(),
           .most_images = std::max(spec_.batch, largest) * accumulate(),
           .there = there_,
           .kept_features = kept_features_,
           .decoding_seconds = decoding_seconds_}};
}

void SpeedTuning::climb_micro_batches(tune::StepBench& bench, const std::vector<int>& sizes,
                                      tune::Findings& to) {
  if (sizes.empty()) return;
  to.micro_batch = tune::measure_ladder(bench, {.flag = "micro-batch", .usual = usual_micro_batch_},
                                        sizes, [spec = spec_](int value) mutable {
                                          spec.flags.micro_batch = value;
                                          return spec;
                                        });
  spec_.flags.micro_batch = to.micro_batch->advised();
}

void SpeedTuning::climb_batches(tune::StepBench& bench, const std::vector<int>& sizes,
                                tune::Findings& to) {
  if (sizes.empty()) return;
  to.batch = tune::measure_ladder(
      bench, {.flag = "batch", .usual = static_cast<int>(spec_.batch), .larger_alone = true}, sizes,
      [spec = spec_](int value) mutable {
        spec.batch = static_cast<std::size_t>(value);
        return spec;
      });
  if (const auto advised = to.batch->advised()) spec_.batch = static_cast<std::size_t>(*advised);
  spec_.flags.batch = spec_.batch;
}

}  // namespace

void tune_speed(training::Session& session, training::TrainingSpec& spec,
                const TuneOptions& options, const std::optional<tune::RateRange>& rates,
                tune::Findings& to) {
  SpeedTuning(session, spec, options, rates).run(to);
}

std::optional<double> kept_part(training::Session& session, const training::TrainingSpec& asked) {
  constexpr int kSomeClasses = 2;
  const tune::Silence silence(session);
  if (training::views_of(training::plan_training(session, asked, kSomeClasses), 1) == 0) {
    return std::nullopt;
  }
  training::TrainingSpec spec = asked;
  data::DataRequest request = spec.flags.data_request(spec.seed);
  if (spec.flags.data.empty()) request.spec = fmt::format("synthetic:{}", 2 * spec.batch);
  request.memory = training::rank_memory(training::measure_capacities(session), 0);
  auto source = std::make_shared<const data::DataSource>(session.services.data.open(request));
  training::follow_ready_form(spec, *source);
  const int classes = training::classes_of(spec, *source);
  training::Training training(session, training::plan_training(session, std::move(spec), classes),
                              std::move(source));
  training.compile();
  const double part = training.compiled().kept_features;
  return part > 0 ? std::optional(part) : std::nullopt;
}

}  // namespace cputrain::commands
