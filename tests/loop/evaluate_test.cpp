#include "loop/evaluate.h"

#include <gtest/gtest.h>

#include "comm/communicator.h"
#include "core/error.h"

namespace cputrain::loop {
namespace {

/// Answers always the same, and notes what it is asked for.
class AskedProgram final : public compute::Program {
 public:
  explicit AskedProgram(int outputs) : outputs_(outputs) {}

  const compute::StoredParameters& parameters() const override { return parameters_; }
  void forward(const compute::MicroBatch& batch, const compute::Pass& pass) override {
    announced += pass.probabilities;
    probabilities_.assign(static_cast<std::size_t>(batch.size() * outputs_), 0.125f);
    tally_.images += static_cast<double>(batch.size());
  }
  compute::Pending<compute::Tally> tally() override { return std::exchange(tally_, {}); }
  void backward(const compute::Backward&) override {}
  void publish_statistics() override {}
  std::span<const float> probabilities() override {
    ++asked;
    return probabilities_;
  }
  std::vector<compute::LayerTime> layer_times() const override { return {}; }
  std::size_t workspace_bytes() const override { return 0; }

  int announced = 0;  ///< passes that said so
  int asked = 0;      ///< for probabilities

 private:
  int outputs_;
  compute::Tally tally_;
  compute::StoredParameters parameters_{{}, {}, compute::host_memory()};
  std::vector<float> probabilities_;
};

/// Micro-batches of two images of class 0.
class Pairs final : public data::BatchSource {
 public:
  void seek(int, std::size_t) override {}
  const compute::MicroBatch& next() override {
    ++given_;
    return batch_;
  }
  bool may_fail() const override { return fails_after > 0; }
  std::string failure() const override { return may_fail() && given_ >= fails_after ? "lost" : ""; }

  int fails_after = 0;  ///< so many micro-batches; 0: never

 private:
  int given_ = 0;
  std::vector<const std::uint8_t*> images_{nullptr, nullptr};
  std::vector<std::int32_t> labels_{0, 0};
  std::vector<std::uint32_t> samples_{0, 1};
  compute::MicroBatch batch_{images_, labels_, samples_};
};

constexpr int kPasses = 6;  ///< of 12 images, two at once

compute::Tally evaluate_alone(AskedProgram& program, const PredictionObserver& observer = {}) {
  Pairs batches;
  const auto alone = comm::make_solo();
  return evaluate(program, batches, data::BatchPlan(12, 4, 2, 0, 1), *alone, observer);
}

TEST(Evaluate, AsksForNoProbabilitiesWhereNobodyNeedsThem) {
  for (const int outputs : {1, 2, 5, 8}) {
    AskedProgram program(outputs);
    EXPECT_EQ(evaluate_alone(program).images, 12);
    EXPECT_EQ(program.asked, 0) << outputs;
    EXPECT_EQ(program.announced, 0) << outputs;
  }
}

TEST(Evaluate, ProgressNeedsNoProbabilities) {
  AskedProgram program(2);
  Pairs batches;
  const auto alone = comm::make_solo();
  int told = 0;
  const auto tally = evaluate_while({.progress = [&](int images) { told += images; }}, program,
                                    batches, data::BatchPlan(12, 4, 2, 0, 1), *alone);
  EXPECT_EQ(tally->images, 12);
  EXPECT_EQ(told, 12);
  EXPECT_EQ(program.asked + program.announced, 0);
}

/// In the last micro-batch, too.
TEST(Evaluate, OfLostImagesThereIsNoAnswer) {
  const auto alone = comm::make_solo();
  const data::BatchPlan plan(12, 4, 2, 0, 1);
  for (const int after : {1, 2, kPasses, kPasses + 1}) {
    AskedProgram program(2);
    Pairs batches;
    batches.fails_after = after;
    const auto tally = evaluate_while({}, program, batches, plan, *alone);
    EXPECT_EQ(tally.has_value(), after > kPasses);
    Pairs others;
    others.fails_after = after;
    if (after > kPasses) {
      EXPECT_EQ(evaluate(program, others, plan, *alone).images, 12);
    } else {
      EXPECT_THROW(evaluate(program, others, plan, *alone), Error);
    }
  }
}

TEST(Evaluate, AsksOnceAPassWhereSomebodyHearsTheAnswers) {
  for (const int outputs : {1, 8}) {
    AskedProgram program(outputs);
    int heard = 0;
    evaluate_alone(program, [&](std::span<const std::int32_t> labels, std::span<const float> row) {
      ++heard;
      EXPECT_EQ(row.size(), labels.size() * static_cast<std::size_t>(outputs));
    });
    EXPECT_EQ(heard, kPasses);
    EXPECT_EQ(program.announced, kPasses);
    EXPECT_EQ(program.asked, kPasses);
  }
}

}  // namespace
}  // namespace cputrain::loop
