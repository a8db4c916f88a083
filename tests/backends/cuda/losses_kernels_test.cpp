#include "backends/cuda/kernels/losses.h"

#include <algorithm>

#include "backends/cuda/selftest/plain_losses.h"
#include "compute/tally.h"
#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

struct Batch {
  int classes;
  double smoothing;
  std::vector<std::int32_t> labels;
  std::vector<float> logits;  ///< labels.size() x classes, of numbers that the format has
  Numbers numbers = Numbers::exact;

  std::size_t images() const { return labels.size(); }
  std::size_t columns() const { return static_cast<std::size_t>(classes); }
};

struct Outcome {
  std::vector<float> probabilities;
  std::vector<double> slopes, losses;
  std::vector<std::int32_t> correct, among_five;
  std::vector<float> diff;  ///< with padding
};

constexpr double kScale = 1.0 / 3;

/// Numbers between rows are no part of them: here they are none.
Outcome run_once(const Batch& b) {
  const Stream stream = test_stream().get();
  const DeviceArray<std::int32_t> labels(b.labels);
  const DeviceMap logits(b.numbers, with_padding(b.logits, b.classes, kNaN));
  const auto probabilities = DeviceArray<float>::poisoned(b.logits.size());
  const auto slopes = DeviceArray<double>::poisoned(b.logits.size());
  const auto losses = DeviceArray<ImageLoss>::poisoned(b.images());
  const int row = padded_channels(b.classes);
  const auto diff = DeviceMap::poisoned(b.numbers, b.images() * static_cast<std::size_t>(row));
  const DeviceArray<PassFacts> facts(
      std::vector{PassFacts{.labels = labels.data(), .loss_scale = kScale}});
  const LossCall call{static_cast<int>(b.images()), b.classes, row, b.smoothing, facts.data()};
  cross_entropy_forward(stream, b.numbers, call, logits.data(), probabilities.data(), slopes.data(),
                        losses.data());
  cross_entropy_backward(stream, b.numbers, call, slopes.data(), diff.data());
  Outcome outcome{probabilities.read(), slopes.read(), {}, {}, {}, diff.read()};
  for (const ImageLoss& loss : losses.read()) {
    outcome.losses.push_back(loss.loss);
    outcome.correct.push_back(loss.correct);
    outcome.among_five.push_back(loss.among_five);
  }
  return outcome;
}

Outcome run(const Batch& b) {
  const Outcome first = run_once(b), second = run_once(b);
  EXPECT_TRUE(same_bits(first.probabilities, second.probabilities));
  EXPECT_TRUE(same_bits(first.slopes, second.slopes));
  EXPECT_TRUE(same_bits(first.losses, second.losses));
  EXPECT_TRUE(same_bits(first.correct, second.correct));
  EXPECT_TRUE(same_bits(first.among_five, second.among_five));
  EXPECT_TRUE(same_bits(first.diff, second.diff));
  return first;
}

void expect_close(double actual, long double expected, double scale) {
  ASSERT_NEAR(actual, static_cast<double>(expected), 1e-13 * scale);
}

void expect_image(const Batch& b, const Outcome& outcome, std::size_t image) {
  SCOPED_TRACE("image " + std::to_string(image) + ", label " + std::to_string(b.labels[image]));
  const std::size_t first = image * b.columns();
  const std::span row = std::span(b.logits).subspan(first, b.columns());
  const PlainLoss exact = plain_loss(row, b.labels[image], b.smoothing);
  const std::span kernel = std::span(outcome.probabilities).subspan(first, b.columns());
  const double largest = std::abs(
      static_cast<double>(*std::ranges::max_element(row, {}, [](float z) { return std::abs(z); })));
  for (std::size_t c = 0; c < b.columns(); ++c) {
    ASSERT_FLOAT_EQ(kernel[c], static_cast<float>(exact.probabilities[c])) << "class " << c;
    expect_close(outcome.slopes[first + c], exact.slopes[c], 1);
  }
  expect_close(outcome.losses[image], exact.loss, 10 + largest);
  EXPECT_EQ(outcome.correct[image],
            compute::predicted_class(kernel) == static_cast<std::size_t>(b.labels[image]));
  if (b.classes == 1) return;
  EXPECT_EQ(outcome.among_five[image],
            compute::among_best(kernel, static_cast<std::size_t>(b.labels[image]), compute::kFive));
}

void expect_batch(const Batch& b) {
  SCOPED_TRACE(std::string(word_of(b.numbers)) + ", " + std::to_string(b.classes) +
               " classes, smoothing " + std::to_string(b.smoothing));
  const Outcome outcome = run(b);
  for (std::size_t image = 0; image < b.images(); ++image) expect_image(b, outcome, image);
  const auto diff = without_padding(outcome.diff, b.classes);
  for (std::size_t i = 0; i < diff.size(); ++i) {
    ASSERT_EQ(diff[i], rounded(b.numbers, static_cast<float>(kScale * outcome.slopes[i])));
  }
}

Batch random_batch(int classes, double smoothing, std::size_t images, float spread) {
  Batch b{classes, smoothing, {}, {}};
  b.logits = random_floats(images * b.columns(), 1);
  for (float& z : b.logits) z *= spread;
  for (std::size_t i = 0; i < images; ++i) {
    b.labels.push_back(static_cast<std::int32_t>(i * 7) % std::max(2, classes));
  }
  return b;
}

TEST(CrossEntropyKernels, AreTheirDefinition) {
  for (const double smoothing : {0.0, 0.1}) {
    for (const int classes : {1, 2, 3, 10, 33}) {
      expect_batch(random_batch(classes, smoothing, 131, 4));
    }
    expect_batch(random_batch(1000, smoothing, 5, 4));
    expect_batch(random_batch(21841, smoothing, 1, 4));
  }
}

TEST(CrossEntropyKernels, ReadAndWriteRoundedNumbers) {
  for (const Numbers numbers : {Numbers::tf32, Numbers::bf16}) {
    for (const int classes : {1, 2, 33}) {
      Batch b = random_batch(classes, 0.1, 35, 4);
      b.logits = rounded(numbers, b.logits);
      b.numbers = numbers;
      expect_batch(b);
    }
  }
}

TEST(CrossEntropyKernels, StandHugeLogits) {
  for (const float spread : {1e3f, 1e30f, 3e38f}) {
    for (const int classes : {1, 2, 10}) expect_batch(random_batch(classes, 0.1, 9, spread));
  }
}

std::vector<double> random_doubles(std::size_t count) {
  const std::vector<float> floats = random_floats(count, 7);
  std::vector<double> made;
  for (const float value : floats) made.push_back(static_cast<double>(value) / 3);
  return made;
}

std::vector<std::int32_t> correct_of(const Batch& b) { return run(b).correct; }

TEST(CrossEntropyKernels, GiveTiesToTheFirst) {
  for (const int classes : {2, 3, 70}) {
    Batch b{classes, 0, {0, 1, 1, 0}, std::vector<float>(4 * static_cast<std::size_t>(classes))};
    EXPECT_EQ(correct_of(b), (std::vector<std::int32_t>{1, 0, 0, 1}));
    for (std::size_t image = 0; image < 4; ++image) b.logits[image * b.columns()] = -1;
    EXPECT_EQ(correct_of(b), (std::vector<std::int32_t>{0, 1, 1, 0}));
  }
}

TEST(CrossEntropyKernels, RankEqualAnswersInTheOrderOfClasses) {
  for (const int classes : {6, 40, 70}) {
    Batch b{classes, 0, {0, 4, 5, static_cast<std::int32_t>(classes) - 1}, {}};
    b.logits.assign(4 * b.columns(), 0.5f);
    EXPECT_EQ(run(b).among_five, (std::vector<std::int32_t>{1, 1, 0, 0}));
    b.logits[4 * b.columns() - 1] = 0.75f;
    EXPECT_EQ(run(b).among_five, (std::vector<std::int32_t>{1, 1, 0, 1}));
  }
}

// Both probabilities are a half in float, though not in double.
TEST(CrossEntropyKernels, JudgeTheProbabilitiesAsFloats) {
  EXPECT_EQ(correct_of({2, 0, {0, 1}, {0, 1e-9f, 0, 1e-9f}}), (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(correct_of({1, 0, {0, 1}, {1e-9f, 1e-9f}}), (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(correct_of({1, 0, {0, 1, 0, 1}, {1e-3f, 1e-3f, -1e-3f, -1e-3f}}),
            (std::vector<std::int32_t>{0, 1, 1, 0}));
}

TEST(CrossEntropyKernels, CountNaNAsWrong) {
  for (const int classes : {1, 2, 40}) {
    for (const float strange : {kNaN, kInfinity}) {
      for (std::int32_t label = 0; label < 2; ++label) {
        Batch b{classes, 0.1, {label}, std::vector<float>(static_cast<std::size_t>(classes), 1)};
        b.logits.back() = strange;
        if (classes == 1 && strange == kInfinity) continue;  // a probability of 1
        const Outcome outcome = run(b);
        EXPECT_EQ(outcome.correct[0], 0);
        EXPECT_EQ(outcome.among_five[0], 0);
        EXPECT_TRUE(std::isnan(outcome.losses[0]));
        EXPECT_TRUE(
            std::ranges::all_of(outcome.probabilities, [](float p) { return std::isnan(p); }));
      }
    }
  }
}

TEST(CrossEntropyKernels, AddUpInTheOrderOfImages) {
  for (const std::size_t images : {1u, 127u, 128u, 129u, 300u}) {
    const std::vector<double> numbers = random_doubles(images);
    std::vector<ImageLoss> losses;
    LossSums expected{.loss = 0.5, .correct = 1, .among_five = 2, .images = 3};
    double loss = 0;
    for (std::size_t i = 0; i < images; ++i) {
      losses.push_back({numbers[i], i % 3 == 0, i % 2 == 0});
      loss += numbers[i];
      expected.correct += losses[i].correct;
      expected.among_five += losses[i].among_five;
    }
    const DeviceArray<LossSums> sums(std::vector{LossSums{0.5, 1, 2, 3}});
    const DeviceArray<ImageLoss> read(losses);
    add_losses(test_stream().get(), static_cast<int>(images), read.data(), sums.data());
    const LossSums made = sums.read().front();
    EXPECT_EQ(made.loss, expected.loss + loss) << images;
    EXPECT_EQ(made.correct, expected.correct);
    EXPECT_EQ(made.among_five, expected.among_five);
    EXPECT_EQ(made.images, 3.0 + static_cast<double>(images));
  }
}

TEST(CrossEntropyKernels, LaunchNothingForNoImages) {
  const LossCall call{0, 10, 16, 0, nullptr};
  cross_entropy_forward(test_stream().get(), Numbers::exact, call, nullptr, nullptr, nullptr,
                        nullptr);
  cross_entropy_backward(test_stream().get(), Numbers::exact, call, nullptr, nullptr);
  test_stream().synchronize();
}

}  // namespace
}  // namespace cputrain::cuda
