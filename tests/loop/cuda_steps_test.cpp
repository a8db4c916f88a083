// The update of a step as a part of its last pass: in one graph, with the figures of each step.
#include <gtest/gtest.h>

#include <limits>

#include "backends/cuda/backend.h"
#include "comm/communicator.h"
#include "emulated/counts.h"
#include "emulated/settings.h"
#include "tests/loop/made_training.h"

namespace cputrain::loop {
namespace {

/// Every step has another rate, and so another momentum.
MadeOptions with_other_rates(const optim::UpdateRule& rule) {
  MadeOptions options;
  options.optimizer = {.rule = rule, .weight_decay = 0.1};
  options.optimizer.momentum_correction = optim::momentum_of(rule) > 0;
  options.l2 = 0.01f;
  options.rate = {.base = 0.01, .schedule = optim::InverseTimeDecay{0.5}};
  options.prefetch = 0;
  return options;
}

MadeResult train_on_device(MadeOptions options, bool captures = true) {
  options.backend = [captures] { return cuda::make_device_backend({.captures = captures}); };
  return train_made(*comm::make_solo(), options);
}

/// While it lives, devices work in this order.
class InOrder {
 public:
  InOrder(emulated::Order order, unsigned seed = 1) {
    emulated::Settings settings = before_;
    settings.order = order;
    settings.seed = seed;
    emulated::restart(settings);
  }
  ~InOrder() { emulated::restart(before_); }

 private:
  emulated::Settings before_ = emulated::settings();
};

/// Steps of three micro-batches, of other sizes, and in the last one of an epoch of one.
TEST(CudaSteps, HaveTheBitsOfStepsWithoutGraphs) {
  for (const optim::UpdateRule& rule : std::vector<optim::UpdateRule>{
           optim::Sgd{.momentum = 0.9}, optim::RmsProp{}, optim::Adam{}}) {
    SCOPED_TRACE(optim::rule_name(rule));
    const MadeOptions options = with_other_rates(rule);
    const std::string plain = train_on_device(options, false).weights_hash;
    EXPECT_EQ(train_on_device(options).weights_hash, plain);
    for (const auto order : {emulated::Order::reverse, emulated::Order::random}) {
      const InOrder in_order(order, 5);
      EXPECT_EQ(train_on_device(options).weights_hash, plain);
    }
  }
}

/// As if the device's times meant something.
MadeResult train_by_timed_tiles(MadeOptions options, std::uint64_t steps, bool measures = true) {
  options.backend = [measures] { return cuda::make_device_backend({.measures = measures}); };
  options.micro_batch = 5;
  options.train.steps = steps;
  return train_made(*comm::make_solo(), options);
}

TEST(CudaSteps, TryTilesAndAreGraphsAfterwards) {
  constexpr std::uint64_t kSteps = 40;
  const MadeOptions options = with_other_rates(optim::Sgd{.momentum = 0.9});
  const auto graphs = [] { return emulated::counts().graphs; };
  const std::uint64_t before = graphs();
  const MadeResult tried = train_by_timed_tiles(options, kSteps);
  const std::uint64_t between = graphs();
  EXPECT_EQ(tried.weights_hash, train_by_timed_tiles(options, kSteps, false).weights_hash);
  EXPECT_GT(between - before, kSteps / 4);
  EXPECT_LT(between - before + 6, graphs() - between);
  EXPECT_TRUE(tried.recorder.steps.front().trying);
  EXPECT_FALSE(tried.recorder.steps.back().trying);
}

/// What the fourth step takes.
emulated::Counts counts_of_step(MadeOptions options, bool captures = true) {
  const auto counts_of = [&](std::uint64_t steps) {
    options.train.steps = steps;
    const emulated::Counts before = emulated::counts();
    train_on_device(options, captures);
    return difference(emulated::counts(), before);
  };
  const emulated::Counts three = counts_of(3);
  return difference(counts_of(4), three);
}

std::uint64_t launches(const emulated::Counts& counts, const char* kernel) {
  const auto found = counts.kernels.find(kernel);
  return found == counts.kernels.end() ? 0 : found->second.launches;
}

/// Facts of the pass have those of the update, which are written once more where it is no part.
TEST(CudaSteps, AreOneGraphWithTheUpdate) {
  MadeOptions options = with_other_rates(optim::Adam{});
  options.micro_batch = 5;
  const emulated::Counts step = counts_of_step(options), plain = counts_of_step(options, false);
  EXPECT_EQ(step.graphs, 1u);
  EXPECT_LE(step.waits(), 3u);
  EXPECT_EQ(launches(step, "update"), 1u);
  EXPECT_EQ(launches(step, "write_facts"), 1u);
  EXPECT_EQ(launches(step, "change_gradients"), 0u);
  EXPECT_EQ(plain.graphs, 0u);
  EXPECT_EQ(plain.launches(), step.launches() + 1);  // facts of forward by itself
}

TEST(CudaSteps, UpdateWithTheLastOfTheirPasses) {
  const emulated::Counts step = counts_of_step(with_other_rates(optim::Adam{}));
  EXPECT_EQ(step.graphs, 3u);
  EXPECT_EQ(launches(step, "update"), 1u);
  EXPECT_EQ(launches(step, "write_facts"), 3u);
}

/// Somebody looks at the gradients before.
TEST(CudaSteps, UpdateBehindWhatMustBeKnownBefore) {
  std::vector<MadeOptions> all(3, with_other_rates(optim::Adam{}));
  all[0].train.on_nan = NanPolicy::skip;
  all[1].optimizer.clip_norm = 0.05;
  all[2].optimizer.rule = optim::Lamb{};
  for (MadeOptions& options : all) {
    options.micro_batch = 5;
    const emulated::Counts step = counts_of_step(options);
    EXPECT_EQ(step.graphs, 1u);
    EXPECT_EQ(launches(step, "update"), 1u);
    const bool by_segment = optim::is_layer_wise(options.optimizer.rule);
    EXPECT_EQ(launches(step, "write_facts"), by_segment ? 1u : 2u);
    EXPECT_EQ(launches(step, "write_segment_facts"), by_segment ? 1u : 0u);
  }
}

TEST(CudaSteps, GoOnFromACheckpoint) {
  MadeOptions options = with_other_rates(optim::Sgd{.momentum = 0.9});
  options.due = [](const Progress& progress) { return progress.steps == 3; };
  const MadeResult whole = train_on_device(options);
  options.due = nullptr;
  options.start = &whole.control.taken.at(0);
  EXPECT_EQ(train_on_device(options).weights_hash, whole.weights_hash);
}

TEST(CudaSteps, ThatAreSkippedChangeNothing) {
  MadeOptions options = with_other_rates(optim::Sgd{.momentum = 0.9});
  options.train.on_nan = NanPolicy::skip;
  options.due = [](const Progress& progress) { return progress.steps == 3 || progress.steps == 4; };
  options.fault = [](const FaultPlace& place) {
    if (place.phase != comm::Phase::backward || place.step != 4) return;
    *place.loss_scale = std::numeric_limits<double>::quiet_NaN();
  };
  const MadeResult made = train_on_device(options);
  const MadeState &before = made.control.taken.at(0), &after = made.control.taken.at(1);
  EXPECT_EQ(after.weights, before.weights);
  EXPECT_EQ(after.state, before.state);
  EXPECT_EQ(after.progress.last_rate, before.progress.last_rate);
}

TEST(CudaSteps, ThatAreLeftOutKeepTheirPlace) {
  MadeOptions options = with_other_rates(optim::Adam{});
  options.left_out = {3};
  const MadeResult made = train_on_device(options);
  EXPECT_TRUE(made.recorder.steps.at(2).skipped);
  EXPECT_EQ(made.weights_hash, train_on_device(options, false).weights_hash);
}

}  // namespace
}  // namespace cputrain::loop
