#include "optim/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/error.h"

namespace cputrain::optim {
namespace {

/// Rates of all steps of a training.
std::vector<double> rates(const LearningRateOptions& options, int epochs, std::size_t steps) {
  const LearningRate rate(options, epochs);
  std::vector<double> list;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (std::size_t step = 0; step < steps; ++step) {
      list.push_back(rate.at({epoch, step, steps, list.size()}));
    }
  }
  return list;
}

LearningRateOptions with(const std::string& schedule) {
  return {.base = 0.5, .schedule = parse_schedule(schedule)};
}

TEST(Scale, IsTheRuleOfTheSources) {
  EXPECT_EQ(scale_factor(RateScale::none, 8), 1);
  EXPECT_EQ(scale_factor(RateScale::linear, 8), 8);
  EXPECT_DOUBLE_EQ(scale_factor(RateScale::sqrt, 8), std::sqrt(8.0));
  EXPECT_NEAR(scale_factor(RateScale::pow23, 8), 4, 1e-14);
  EXPECT_DOUBLE_EQ(LearningRate({.base = 0.1, .scale = RateScale::linear, .n = 0.5}, 1).target(),
                   0.05);
  EXPECT_EQ(LearningRate({.base = 0.1, .scale = RateScale::linear}, 1).target(), 0.1);
}

// Horovod's LearningRateWarmupCallback: after the batch that ends at epoch e the rate is
// target / n * (e * (n - 1) / warmup + 1); it is set before that batch.
TEST(Warmup, IsHorovods) {
  constexpr int kRanks = 4, kWarmup = 3, kSteps = 7;
  const auto list = rates(
      {.base = 0.1, .scale = RateScale::linear, .n = kRanks, .warmup_epochs = kWarmup}, 5, kSteps);
  for (int i = 0; i < 5 * kSteps; ++i) {
    const int epoch = i / kSteps, batch = i % kSteps;
    const double e = epoch + (batch + 1.0) / kSteps;
    const double expected =
        i < kWarmup * kSteps ? 0.4 / kRanks * (e * (kRanks - 1) / kWarmup + 1) : 0.4;
    EXPECT_NEAR(list[static_cast<std::size_t>(i)], expected, 1e-15) << i;
  }
  EXPECT_NEAR(list[kWarmup * kSteps - 1], 0.4, 1e-15) << "warm-up ends at the target";
}

TEST(Warmup, MayEndWithinAnEpoch) {
  const auto list =
      rates({.base = 1, .scale = RateScale::linear, .n = 2, .warmup_epochs = 0.75}, 2, 2);
  // Ends of the steps: 0.5, 1, ...; the second step is cut off at 0.75, the target.
  EXPECT_NEAR(list[0], 1 * (0.5 / 0.75 + 1), 1e-15);
  EXPECT_EQ(list[1], 2);
  EXPECT_EQ(list[2], 2);
}

TEST(Warmup, BeginsAtZeroWhereNothingIsScaled) {
  const auto list = rates({.base = 0.8, .warmup_epochs = 2}, 3, 4);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(list[i], 0.8 * (i + 1.0) / 8, 1e-15);
  EXPECT_EQ(list[8], 0.8);
  // One rank scales by one: there is nothing to rise from.
  EXPECT_EQ(rates({.base = 0.8, .scale = RateScale::linear, .n = 1, .warmup_epochs = 2}, 1, 2),
            (std::vector<double>{0.8, 0.8}));
}

TEST(Schedule, Step) {
  const auto list = rates(with("step:2:0.1"), 5, 3);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const double expected = i < 6 ? 0.5 : i < 12 ? 0.05 : 0.005;
    EXPECT_NEAR(list[i], expected, 1e-16) << i;
  }
  // 0.3 / 0.1 is a little less than 3, but three tenths of an epoch are done.
  EXPECT_NEAR(rates(with("step:0.1:0.5"), 1, 10)[3], 0.5 * 0.125, 1e-16);
}

TEST(Schedule, Piecewise) {
  const auto list = rates(with("piecewise:1:0.5,2.5:0.01"), 4, 2);
  const std::vector<double> factors{1, 1, 0.5, 0.5, 0.5, 0.01, 0.01, 0.01};
  for (std::size_t i = 0; i < list.size(); ++i) EXPECT_NEAR(list[i], 0.5 * factors[i], 1e-16) << i;
}

// Keras' CosineDecay and PolynomialDecay: alpha and end rate are the floor.
TEST(Schedule, CosineAndPolynomialEndWithTheTraining) {
  const auto cosine = rates(with("cosine:0.1"), 4, 5), poly = rates(with("poly:2:0.1"), 4, 5);
  for (std::size_t i = 0; i < 20; ++i) {
    const double p = i / 20.0;
    EXPECT_NEAR(cosine[i], 0.5 * (0.9 * 0.5 * (1 + std::cos(std::numbers::pi * p)) + 0.1), 1e-15);
    EXPECT_NEAR(poly[i], 0.5 * (0.9 * (1 - p) * (1 - p) + 0.1), 1e-15);
  }
  EXPECT_NEAR(rates(with("poly"), 4, 5)[10], 0.25, 1e-16);
}

TEST(Schedule, BeginsWhereWarmupEnds) {
  LearningRateOptions options = with("cosine");
  options.warmup_epochs = 2;
  const auto list = rates(options, 6, 5);
  EXPECT_NEAR(list[9], 0.5, 1e-16);
  for (std::size_t i = 10; i < 30; ++i) {
    EXPECT_NEAR(list[i], 0.25 * (1 + std::cos(std::numbers::pi * (i - 10.0) / 20)), 1e-15);
  }
  options.warmup_epochs = 9;  // longer than the training: only the rise is seen
  EXPECT_NEAR(rates(options, 6, 5)[29], 0.5 * 6 / 9, 1e-15);
}

TEST(Schedule, DecayIsKeras) {
  const auto list = rates(with("decay:0.1"), 2, 3);
  for (std::size_t i = 0; i < list.size(); ++i) EXPECT_NEAR(list[i], 0.5 / (1 + 0.1 * i), 1e-16);
}

// Keras' ReduceLROnPlateau with patience 2: an epoch that is not better by 1e-4 counts, two in a
// row multiply and start the count again.
TEST(Schedule, PlateauFollowsTheLoss) {
  LearningRate rate(with("plateau:2:0.5"), 100);
  const auto after = [&](double loss) {
    rate.epoch_ended({.loss = loss});
    return rate.at({1, 0, 1, 1});
  };
  EXPECT_EQ(after(1.0), 0.5);
  EXPECT_EQ(after(0.9), 0.5);
  EXPECT_EQ(after(0.89991), 0.5);   // not enough: 1
  EXPECT_EQ(after(0.95), 0.25);     // 2
  EXPECT_EQ(after(0.95), 0.25);     // 1
  EXPECT_EQ(after(0.89989), 0.25);  // better
  EXPECT_EQ(after(NAN), 0.25);      // 1
  EXPECT_EQ(after(0.8999), 0.125);  // 2
}

// The same with monitor="val_accuracy", mode "max"; what the loss does is of no account.
TEST(Schedule, PlateauFollowsTheAccuracyWhereThatIsAskedFor) {
  LearningRate rate(with("plateau:2:0.5"), 100);
  const auto after = [&](double accuracy, double loss) {
    rate.epoch_ended({.loss = loss, .accuracy = accuracy, .monitor = Monitor::accuracy});
    return rate.at({1, 0, 1, 1});
  };
  EXPECT_EQ(after(NAN, NAN), 0.5);    // 1: a loss that is not finite is no best
  EXPECT_EQ(after(0.0, 9), 0.5);      // the first is better than none
  EXPECT_EQ(after(0.5, 1.0), 0.5);    // better
  EXPECT_EQ(after(0.50005, 1), 0.5);  // not enough: 1
  EXPECT_EQ(after(0.5, 0.1), 0.25);   // 2, though the loss falls
  EXPECT_EQ(after(0.6, 2.0), 0.25);   // better, though the loss rises
  EXPECT_EQ(rate.plateau().best_accuracy, 0.6);
  EXPECT_EQ(rate.plateau().waited, 0);
  // Put into another, it goes on there.
  LearningRate later(with("plateau:2:0.5"), 100);
  later.set_plateau(rate.plateau());
  for (int i = 0; i < 2; ++i) {
    later.epoch_ended({.loss = 1, .accuracy = 0.6, .monitor = Monitor::accuracy});
  }
  EXPECT_EQ(later.at({1, 0, 1, 1}), 0.125);
}

TEST(ParseSchedule, ReadsEveryFormAndWritesItAgain) {
  for (const char* text : {"constant", "step:30:0.1", "piecewise:30:0.1,60.5:0.01", "cosine:0.01",
                           "poly:2:0.001", "plateau:5:0.2", "decay:1e-06"}) {
    EXPECT_EQ(schedule_text(parse_schedule(text)), text);
  }
  EXPECT_EQ(parse_schedule("cosine"), Schedule(CosineDecay{0}));
  EXPECT_EQ(parse_schedule("poly:3"), Schedule(PolynomialDecay{3, 0}));
  EXPECT_EQ(parse_schedule("plateau"), Schedule(Plateau{10, 0.1}));
}

TEST(ParseSchedule, RefusesTheRestNamingIt) {
  for (const std::string text : {"",
                                 "steps",
                                 "step",
                                 "step:30",
                                 "step:0:0.1",
                                 "step:30:0.1:2",
                                 "step:x:0.1",
                                 "step:30:",
                                 "step:30:-1",
                                 "step:nan:0.1",
                                 "piecewise",
                                 "piecewise:",
                                 "piecewise:30",
                                 "piecewise:30:0.1,30:0.01",
                                 "piecewise:30:0.1,",
                                 "cosine:2",
                                 "cosine:",
                                 "cosine:0.1 ",
                                 "poly:-1",
                                 "plateau:0",
                                 "plateau:1.5",
                                 "plateau:3:inf",
                                 "decay",
                                 "decay:-1",
                                 "constant:1",
                                 "constant:",
                                 "step:1e999:0.1"}) {
    try {
      parse_schedule(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find("--schedule " + text), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("cosine[:FLOOR]"), std::string::npos);
    }
  }
}

TEST(LearningRate, ABatchBelowTheBasesHasNothingToRiseFrom) {
  LearningRate rate({.base = 0.02, .scale = RateScale::linear, .n = 0.25, .warmup_epochs = 2}, 5);
  for (std::size_t step = 0; step < 6; ++step) {
    EXPECT_DOUBLE_EQ(rate.at({static_cast<int>(step / 2), step % 2, 2, step}), 0.005);
  }
}

}  // namespace
}  // namespace cputrain::optim
