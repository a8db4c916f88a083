// What becomes of a step whose gradients are no numbers.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/reference/reference_backend.h"
#include "backends/threads/threads_communicator.h"
#include "core/error.h"
#include "tests/loop/made_training.h"

namespace cputrain::loop {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The gradients of one rank are `factor` times as large in this step, which counts from 1, or in
/// all from there on.
FaultPoint fault_in(int rank, std::uint64_t step, double factor = kNaN, bool for_ever = false) {
  return [=](const FaultPlace& place) {
    const bool now = for_ever ? place.step >= step : place.step == step;
    if (place.phase != comm::Phase::backward || place.rank != rank || !now) return;
    *place.loss_scale *= factor;
  };
}

void expect_unchanged(const MadeState& before, const MadeState& after) {
  EXPECT_EQ(after.weights, before.weights);
  EXPECT_EQ(after.state, before.state);
  EXPECT_EQ(after.progress.last_rate, before.progress.last_rate);
}

class NanPolicies : public ::testing::TestWithParam<int> {
 protected:
  /// The last one: of others it is known by the sum alone.
  int broken() const { return GetParam() - 1; }
};

// Numbers whose squares are infinite: NaN is in the tests below.
TEST_P(NanPolicies, ASkippedStepChangesNothing) {
  auto list = made_recipes();
  list["statistics of each rank"] = {.micro_batch = 22, .batch_norm = true, .synchronised = false};
  for (auto& [name, options] : list) {
    SCOPED_TRACE(name);
    options.due = [](const Progress&) { return true; };
    options.fault = fault_in(broken(), 2, 1e200);
    options.train.on_nan = NanPolicy::skip;
    for (const auto& [rank, made] : train_ranks(GetParam(), options)) {
      expect_unchanged(made.control.taken.at(0), made.control.taken.at(1));
      const StepRecord& step = made.recorder.steps.at(1);
      EXPECT_TRUE(step.skipped);
      EXPECT_FALSE(step.tally.is_number());
      EXPECT_EQ(step.epoch_tally.loss, made.recorder.steps[0].epoch_tally.loss);
      const EpochRecord& epoch = made.recorder.epochs.at(0);
      EXPECT_EQ(epoch.skipped, 1u);
      EXPECT_TRUE(epoch.train.is_number());
      double images = 0;
      for (std::size_t i = 0; i < epoch.steps; ++i) {
        if (i != 1) images += made.recorder.steps[i].tally.images;
      }
      EXPECT_EQ(epoch.train.images, images);
      EXPECT_FALSE(made.recorder.steps.at(2).skipped);
    }
  }
}

// The same bits as in a training that leaves the step out, in every way to exchange gradients.
TEST_P(NanPolicies, ASkippedStepIsOneThatIsLeftOut) {
  for (const char* way : {"shm", "ring", "ps"}) {
    SCOPED_TRACE(way);
    MadeOptions options = summed_by({}, way);
    options.left_out = {3, 8};
    const auto without = train_ranks(GetParam(), options);
    options.left_out = {8};
    options.fault = fault_in(broken(), 3);
    options.train.on_nan = NanPolicy::skip;
    for (const auto& [rank, made] : train_ranks(GetParam(), options)) {
      EXPECT_EQ(made.weights, without.at(rank).weights);
      EXPECT_TRUE(without.at(rank).recorder.steps[7].skipped);
      EXPECT_EQ(made.recorder.epochs[1].skipped, 1u);
    }
  }
}

TEST_P(NanPolicies, LookingChangesNothing) {
  for (const auto& [name, recipe] : made_recipes()) {
    MadeOptions options = summed_by(recipe);
    const auto without = train_ranks(GetParam(), options);
    options.train.on_nan = NanPolicy::skip;
    for (const auto& [rank, made] : train_ranks(GetParam(), options)) {
      EXPECT_EQ(made.weights, without.at(rank).weights) << name;
    }
  }
}

TEST_P(NanPolicies, ARollbackEndsBeforeTheStep) {
  MadeOptions options = summed_by({});
  options.batch_norm = true;
  options.synchronised = false;
  options.micro_batch = 22;
  options.due = [](const Progress&) { return true; };
  options.fault = fault_in(broken(), 8);
  options.train.on_nan = NanPolicy::rollback;
  const auto made = train_ranks(GetParam(), options);
  options.fault = nullptr;
  options.left_out = {8};
  const auto whole = train_ranks(GetParam(), options);
  for (const auto& [rank, result] : made) {
    EXPECT_EQ(result.result.roll_back, 8u);
    EXPECT_EQ(result.result.progress.steps, 7u);
    EXPECT_EQ(result.recorder.steps.size(), 7u);
    EXPECT_EQ(result.control.taken.size(), 7u);
    EXPECT_EQ(result.control.taken.back().weights, whole.at(rank).control.taken[6].weights);
  }
  // From the checkpoint on, without the step.
  const auto rest = train_ranks(GetParam(), [&](int rank) {
    MadeOptions own = options;
    own.start = &made.at(rank).control.taken[5];
    return own;
  });
  for (const auto& [rank, result] : rest) {
    EXPECT_FALSE(result.result.roll_back);
    EXPECT_EQ(result.weights, whole.at(rank).weights);
    EXPECT_TRUE(result.recorder.steps.at(1).skipped);
  }
}

TEST_P(NanPolicies, SkippingHasALimit) {
  MadeOptions options;
  options.train.epochs = 5;
  options.train.on_nan = NanPolicy::skip;
  options.fault = fault_in(broken(), 4, kNaN, true);
  Recorder recorder;
  threads::run_ranks(GetParam(), [&](comm::Communicator& communicator) {
    MadeOptions own = options;
    if (communicator.rank() == 0) own.recorder = &recorder;
    try {
      train_made(communicator, own);
      ADD_FAILURE() << "went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::failed);
      EXPECT_NE(std::string(error.what()).find("Step 13"), std::string::npos) << error.what();
    }
    communicator.barrier();  // nobody lets go of weights that others read
  });
  ASSERT_EQ(recorder.steps.size(), 13u);
  // Nothing was learnt in the second epoch, and no figure says otherwise.
  ASSERT_EQ(recorder.epochs.size(), 2u);
  EXPECT_EQ(recorder.epochs[1].skipped, 5u);
  EXPECT_FALSE(recorder.epochs[1].train.is_number());
  EXPECT_TRUE(recorder.epochs[1].validation->is_number());
}

INSTANTIATE_TEST_SUITE_P(Ranks, NanPolicies, ::testing::Values(1, 2, 3));

// Gradients that were no numbers would stay in what compression owes.
TEST(NanPolicies, SkippingGoesOnAfterCompressedGradients) {
  for (const char* how : {"topk:0.1", "powersgd:2"}) {
    SCOPED_TRACE(how);
    MadeOptions options = summed_by({}, "ring");
    options.compression = exchange::parse_compression(how);
    options.bucket_bytes = 20000;
    options.fault = fault_in(1, 3);
    options.train.on_nan = NanPolicy::skip;
    for (const auto& [rank, made] : train_ranks(2, options)) {
      EXPECT_EQ(made.recorder.epochs.at(0).skipped, 1u);
      EXPECT_EQ(made.recorder.epochs.at(1).skipped, 0u);
      EXPECT_TRUE(made.recorder.epochs.at(1).validation->is_number());
    }
  }
}

TEST(NanPolicies, InfinityIsSkippedAndALargeFloatIsNot) {
  MadeOptions options;
  options.backend = [] { return reference::make_reference_backend(DType::f32); };
  options.optimizer = {.rule = optim::Sgd{}, .clip_norm = 1e-3};
  options.train.on_nan = NanPolicy::skip;
  for (const double factor : {1e25, HUGE_VAL, -HUGE_VAL}) {  // the square of the first is no float
    options.fault = fault_in(0, 2, factor);
    const MadeResult made = train_ranks(1, options).at(0);
    EXPECT_EQ(made.recorder.epochs.at(0).skipped, std::isfinite(factor) ? 0u : 1u) << factor;
    EXPECT_TRUE(made.recorder.epochs.at(1).train.is_number());
  }
}

// Steps that a rollback goes on without say nothing of the weights, however many they are.
TEST(NanPolicies, StepsThatAreLeftOutAreNotCounted) {
  MadeOptions options;
  options.train.epochs = 3;
  options.train.on_nan = NanPolicy::skip;
  for (std::uint64_t step = 1; step <= kMostSkipped + 1; ++step) options.left_out.push_back(step);
  EXPECT_EQ(train_ranks(1, options).at(0).recorder.steps.size(), 15u);
}

/// Adam's update of t = 1, as in torch, whose step counts updates: the moments are g and g^2 in
/// full, so that every weight moves by the rate, but for epsilon.
void expect_first_of_adam(const MadeState& before, const MadeState& after, double rate) {
  const optim::Adam rule;
  for (std::size_t i = 0; i < after.state.at(0).size(); ++i) {
    const double g = after.state[0][i] / (1 - rule.beta1);
    const double root = std::sqrt(1 - rule.beta2);
    const double step = rate * g * root / (std::abs(g) * root + rule.epsilon);
    EXPECT_NEAR(after.weights[i], before.weights[i] - step, 1e-9) << i;
  }
}

TEST(NanPolicies, AdamsCorrectionCountsUpdates) {
  for (const bool left_out : {false, true}) {
    MadeOptions options;
    options.optimizer.rule = optim::Adam{};
    options.batch_norm = true;  // whose statistics do not move, either
    options.micro_batch = 22;
    options.due = [](const Progress&) { return true; };
    options.train.on_nan = NanPolicy::skip;
    if (left_out) options.left_out = {1};
    if (!left_out) options.fault = fault_in(0, 1);
    const MadeResult whole = train_ranks(1, options).at(0);
    const std::vector<MadeState>& taken = whole.control.taken;
    EXPECT_EQ(taken.at(0).progress.skipped, 1u);
    expect_first_of_adam(taken.at(0), taken.at(1), options.rate.base);
    options.start = &taken[0];
    EXPECT_EQ(train_ranks(1, options).at(0).weights, whole.weights);
  }
}

TEST(NanPolicies, ByDefaultTheTrainingEnds) {
  MadeOptions options;
  options.fault = fault_in(0, 3);
  try {
    train_ranks(1, options);
    ADD_FAILURE() << "went on";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Invalid loss"), std::string::npos);
  }
}

}  // namespace
}  // namespace cputrain::loop
