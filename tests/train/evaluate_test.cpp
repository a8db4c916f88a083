#include "train/evaluate.h"

#include <gtest/gtest.h>

#include "comm/solo.h"

namespace cputrain::train {
namespace {

/// Answers always the same, and notes what it is asked for.
class AskedProgram final : public compute::Program {
 public:
  explicit AskedProgram(int outputs) : outputs_(outputs) {}

  const compute::ParameterLayout& layout() const override { return layout_; }
  compute::Tally forward(const compute::MicroBatch& batch, const compute::Pass& pass) override {
    announced += pass.probabilities;
    probabilities_.assign(static_cast<std::size_t>(batch.size() * outputs_), 0.125f);
    return {.images = static_cast<double>(batch.size())};
  }
  void backward(double, compute::Accumulate, const compute::ReadySink&) override {}
  void publish_statistics() override {}
  int outputs() const override { return outputs_; }
  std::span<const float> probabilities() const override {
    ++asked;
    return probabilities_;
  }
  std::vector<double> to_canonical(std::size_t, const Array&) const override { return {}; }
  void from_canonical(std::size_t, std::span<const double>, const Array&) const override {}
  std::vector<compute::LayerTime> layer_times() const override { return {}; }
  std::size_t workspace_bytes() const override { return 0; }

  int announced = 0;      ///< passes that said so
  mutable int asked = 0;  ///< for probabilities

 private:
  int outputs_;
  compute::ParameterLayout layout_;
  std::vector<float> probabilities_;
};

/// Micro-batches of two images of class 0.
class Pairs final : public data::BatchSource {
 public:
  void seek(int, std::size_t) override {}
  const compute::MicroBatch& next() override { return batch_; }

 private:
  std::vector<const std::uint8_t*> images_{nullptr, nullptr};
  std::vector<std::int32_t> labels_{0, 0};
  std::vector<std::uint32_t> samples_{0, 1};
  compute::MicroBatch batch_{images_, labels_, samples_};
};

constexpr int kPasses = 6;  ///< of 12 images, two at once

compute::Tally evaluate_alone(AskedProgram& program, const AnswerObserver& observer = {}) {
  Pairs batches;
  const auto alone = comm::make_solo();
  return evaluate(program, batches, data::BatchPlan(12, 4, 2, 0, 1), *alone, observer);
}

TEST(Evaluate, AsksForNoProbabilitiesWhereNobodyNeedsThem) {
  for (const int outputs : {1, 2, 5}) {
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
  const auto all = [] { return true; };
  const auto tally = evaluate_while(all, program, batches, data::BatchPlan(12, 4, 2, 0, 1), *alone,
                                    [&](int images) { told += images; });
  EXPECT_EQ(tally->images, 12);
  EXPECT_EQ(told, 12);
  EXPECT_EQ(program.asked + program.announced, 0);
}

TEST(Evaluate, AsksOnceAPassWhereAnswersAreRanked) {
  AskedProgram program(8);
  const compute::Tally tally = evaluate_alone(program);
  EXPECT_EQ(program.announced, kPasses);
  EXPECT_EQ(program.asked, kPasses);
  EXPECT_EQ(tally.ranked, 12);
  EXPECT_EQ(tally.among_five, 12);  // of equal answers the first classes win
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
}  // namespace cputrain::train
