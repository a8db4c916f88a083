// When the loop waits for the sums of a step: with the next one, or at once where somebody needs
// them.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backends/reference/reference_backend.h"
#include "backends/threads/threads_communicator.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "tests/loop/made_training.h"

namespace cputrain::loop {
namespace {

using Notes = std::vector<std::string>;

/// Notes the first pass of each step with the lines that were written until then, and when the sums
/// of a step are waited for.
class NotedProgram final : public compute::Program {
 public:
  NotedProgram(std::unique_ptr<compute::Program> program, Notes& notes, const Recorder& lines)
      : program_(std::move(program)), notes_(notes), lines_(lines) {}

  const compute::StoredParameters& parameters() const override { return program_->parameters(); }
  void forward(const compute::MicroBatch& batch, const compute::Pass& pass) override {
    const std::uint64_t step = pass.phase == compute::Phase::train ? pass.step + 1 : 0;
    if (step > 0 && step != step_) {
      notes_.push_back(fmt::format("step {} behind {} lines", step, lines_.steps.size()));
    }
    step_ = step;
    program_->forward(batch, pass);
  }
  void backward(const compute::Backward& call) override { program_->backward(call); }
  compute::Pending<compute::Tally> tally() override {
    const auto note = [this, step = step_, sums = program_->tally()] {
      if (step > 0) notes_.push_back(fmt::format("sums of {}", step));
      return sums.wait();
    };
    return compute::Pending<compute::Tally>(note);
  }
  void publish_statistics() override { program_->publish_statistics(); }
  std::span<const float> probabilities() override { return program_->probabilities(); }
  std::vector<compute::LayerTime> layer_times() const override { return program_->layer_times(); }
  std::size_t workspace_bytes() const override { return program_->workspace_bytes(); }

 private:
  std::unique_ptr<compute::Program> program_;
  Notes& notes_;
  const Recorder& lines_;
  std::uint64_t step_ = 0;  ///< of the last pass; 0: it was no training
};

class NotedBackend final : public compute::Backend {
 public:
  NotedBackend(Notes& notes, const Recorder& lines) : notes_(notes), lines_(lines) {}

  const compute::BackendFacts& facts() const override { return backend_->facts(); }
  std::unique_ptr<compute::Program> compile(const model::Graph& graph,
                                            const compute::CompileOptions& options,
                                            const compute::ArenaSource& arenas) override {
    return std::make_unique<NotedProgram>(backend_->compile(graph, options, arenas), notes_,
                                          lines_);
  }
  std::unique_ptr<compute::Update> make_update(const optim::UpdatePlan& plan) override {
    return backend_->make_update(plan);
  }
  void change_gradients(const optim::GradientOperation& operation,
                        const optim::UpdateSlice& slice) override {
    backend_->change_gradients(operation, slice);
  }
  void sum(std::span<const Array> src, const Array& dst) override { backend_->sum(src, dst); }
  compute::Pending<std::vector<double>> block_norms(
      std::span<const compute::ArenaPart> parts) override {
    return backend_->block_norms(parts);
  }
  compute::Limits measure_limits(const compute::Together& together) override {
    return backend_->measure_limits(together);
  }

 private:
  std::unique_ptr<compute::Backend> backend_ = reference::make_reference_backend(DType::f64);
  Notes& notes_;
  const Recorder& lines_;
};

/// Five steps an epoch. The first of an epoch is not settled.
class LateSums : public ::testing::Test {
 protected:
  LateSums() {
    options_.train.epochs = 1;
    options_.recorder = &lines_;
    options_.control = &control_;
    options_.backend = [this] { return std::make_unique<NotedBackend>(notes_, lines_); };
  }

  MadeResult run() { return train_made(*comm::make_solo(), options_); }

  MadeOptions options_;
  Recorder lines_;
  MadeControl control_;
  Notes notes_;
};

TEST_F(LateSums, ComeWhenTheNextStepIsComputed) {
  options_.train.epochs = 2;
  run();
  EXPECT_EQ(notes_, (Notes{"step 1 behind 0 lines",  "sums of 1",  //
                           "step 2 behind 1 lines",                //
                           "step 3 behind 1 lines",  "sums of 2",  //
                           "step 4 behind 2 lines",  "sums of 3",  //
                           "step 5 behind 3 lines",  "sums of 4", "sums of 5",
                           "step 6 behind 5 lines",  "sums of 6",  //
                           "step 7 behind 6 lines",                //
                           "step 8 behind 6 lines",  "sums of 7",  //
                           "step 9 behind 7 lines",  "sums of 8",  //
                           "step 10 behind 8 lines", "sums of 9", "sums of 10"}));
  ASSERT_EQ(lines_.steps.size(), 10u);
  double images = 0;
  for (const StepRecord& step : lines_.steps) {
    if (step.step_in_epoch == 1) images = 0;
    images += step.tally.images;
    EXPECT_EQ(step.tally.images, step.step_in_epoch < 5 ? 5 : 2);
    EXPECT_EQ(step.epoch_tally.images, images) << step.step;
    EXPECT_GT(step.seconds, 0);
  }
}

TEST_F(LateSums, AreAwaitedWhereStepsEnd) {
  options_.train.steps = 3;
  run();
  EXPECT_EQ(notes_.back(), "sums of 3");
  EXPECT_EQ(lines_.steps.size(), 3u);
  EXPECT_EQ(control_.ended.at(0).begun->train.images, 15);
}

TEST_F(LateSums, AreAwaitedByACheckpoint) {
  options_.due = [](const Progress& progress) { return progress.steps == 3; };
  run();
  EXPECT_EQ(control_.taken.at(0).progress.begun->train.images, 15);
  const Notes around(notes_.begin() + 3, notes_.begin() + 7);
  EXPECT_EQ(around,
            (Notes{"step 3 behind 1 lines", "sums of 2", "sums of 3", "step 4 behind 3 lines"}));
}

TEST_F(LateSums, AreAwaitedByAStop) {
  options_.stop = [steps = 0]() mutable { return ++steps == 4; };
  run();
  EXPECT_EQ(control_.stopped.at(0).progress.begun->train.images, 20);
  EXPECT_EQ(lines_.steps.size(), 4u);
}

TEST_F(LateSums, AreAwaitedByAComparisonOfReplicas) {
  options_.train.check_replicas = 3;
  run();
  EXPECT_EQ(notes_.at(6), "step 4 behind 3 lines");
}

/// A batch of the step behind it was computed already.
TEST_F(LateSums, OfARollbackAreToldBeforeIt) {
  options_.train.on_nan = NanPolicy::rollback;
  options_.fault = [](const FaultPlace& place) {
    if (place.phase != comm::Phase::backward || place.step != 4) return;
    *place.loss_scale = std::numeric_limits<double>::quiet_NaN();
  };
  EXPECT_EQ(run().result.roll_back, 4u);
  EXPECT_EQ(lines_.steps.size(), 3u);
}

TEST_F(LateSums, OfAStepBeforeLostInputAreTold) {
  options_.shuffle = false;
  options_.reads = [](std::uint32_t sample) {
    if (sample == 17) throw Error(ExitCode::data, "lost");
  };
  EXPECT_EQ(run().result.lost_input, "lost");
  EXPECT_EQ(lines_.steps.size(), 3u);
  EXPECT_EQ(notes_.back(), "sums of 3");
  EXPECT_EQ(control_.stopped.at(0).progress.begun->train.images, 15);
}

/// The gradients of step 2 make weights, and so the loss of step 3, no numbers.
TEST_F(LateSums, ThatAreNaNNameTheirStepAndGetIntoNoCheckpoint) {
  for (const std::uint64_t due : {3, 4, 5, 0}) {
    SCOPED_TRACE(due);
    notes_.clear();
    lines_ = {};
    options_.due = [=](const Progress& progress) { return progress.steps == due; };
    options_.fault = [](const FaultPlace& place) {
      if (place.phase != comm::Phase::backward || place.step != 2) return;
      *place.loss_scale = std::numeric_limits<double>::quiet_NaN();
    };
    try {
      run();
      ADD_FAILURE() << "went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::failed);
      EXPECT_NE(std::string(error.what()).find("Batch 2: Invalid loss"), std::string::npos)
          << error.what();
    }
    ASSERT_EQ(lines_.steps.size(), 3u);
    EXPECT_TRUE(lines_.steps[1].tally.is_number());
    EXPECT_FALSE(lines_.steps[2].tally.is_number());
    EXPECT_EQ(notes_.back(), "sums of 3");
    EXPECT_EQ(std::ranges::count(notes_, "step 4 behind 2 lines"), due == 3 ? 0 : 1);
    EXPECT_TRUE(control_.taken.empty());
  }
}

// All of it adds up over ranks in the step behind it: every rank hears the same.
TEST(LateSumsOfRanks, AreTheSame) {
  MadeOptions options = summed_by({});
  for (const int ranks : {2, 3}) {
    std::map<int, MadeResult> made = train_ranks(ranks, options);
    for (std::size_t i = 0; i < 10; ++i) {
      const StepRecord& first = made.at(0).recorder.steps.at(i);
      EXPECT_EQ(first.tally.images, first.step_in_epoch < 5 ? 5 : 2);
      for (const auto& [rank, result] : made) {
        const StepRecord& step = result.recorder.steps.at(i);
        EXPECT_EQ(step.step, i + 1);
        EXPECT_EQ(step.tally.loss, first.tally.loss);
        EXPECT_EQ(step.epoch_tally.loss, first.epoch_tally.loss);
      }
    }
  }
}

}  // namespace
}  // namespace cputrain::loop
