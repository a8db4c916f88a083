// Losses of weighted and of mixed labels, against PyTorch 2's numbers in double, and formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/reference/layers.h"

namespace cputrain::reference {
namespace {

struct LossAndSlopes {
  double loss;
  std::vector<double> slopes;
};

template <class Layer>
LossAndSlopes mean_loss(const Layer& layer, int logits, const Targets& targets,
                        const std::vector<double>& z) {
  std::vector<double> probabilities(z.size()), slopes(z.size());
  const compute::Tally tally =
      cross_entropy(layer, logits, targets, z.data(), probabilities.data());
  const auto images = static_cast<double>(targets.labels.size());
  cross_entropy_gradient(logits, targets, probabilities.data(), 1 / images, slopes.data());
  return {tally.loss / images, slopes};
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-7) << i;
}

const std::vector<double> kLogits{0.5,  -1.25, 2.0,   0.25, 1.5, 0.75,
                                  -0.5, -2.0,  -0.25, 0.5,  1.0, 3.0};
constexpr std::array<std::int32_t, 3> kLabels{2, 1, 0};

/// CrossEntropyLoss(weight=tensor([0.5, 2, 1.25, 0.75])): the loader makes weights of images of it.
TEST(Losses, WeighClassesAsPyTorch) {
  constexpr float kScale = 3 / (1.25f + 2 + 0.5f);
  const std::vector<compute::MixedLabel> mixed{
      {2, 1.25f * kScale, 0}, {1, 2 * kScale, 0}, {0, 0.5f * kScale, 0}};
  const auto [loss, slopes] = mean_loss(model::SoftmaxCrossEntropy{}, 4, {kLabels, mixed}, kLogits);
  EXPECT_NEAR(loss, 1.2474451071029478, 1e-7);
  expect_near(slopes, {0.05180597871912067, 0.009002529216331438, -0.1011550447296838,
                       0.04034653679423171, 0.3256203599197776, -0.3795211664157395,
                       0.04406792363735088, 0.009832882858610876, -0.12921781267153712,
                       0.008712557309392384, 0.0143645785581891, 0.10614067680395564});
}

/// CrossEntropyLoss(label_smoothing=0.1) with probabilities of classes as targets.
TEST(Losses, MixLabelsAsPyTorch) {
  const std::vector<compute::MixedLabel> mixed{
      {0, 0.75f, 0.25f}, {1, 0.625f, 0.375f}, {3, 0.875f, 0.125f}};
  const auto [loss, slopes] =
      mean_loss(model::SoftmaxCrossEntropy{}, 4, {kLabels, mixed, 0.1}, kLogits);
  EXPECT_NEAR(loss, 1.7225045966267711, 1e-12);
  expect_near(slopes, {-0.03152735461421265, 0.0006691958829981065, -0.0011550447296837815,
                       0.032013203460898386, 0.19517939161652775, -0.21220072900983716,
                       0.019209118940010976, -0.002187781546701533, -0.2605445316788428,
                       0.01344805994014763, 0.027578113062139423, 0.21951835867655578});
}

/// BCEWithLogitsLoss with targets 0.75, 0 and 0.125.
TEST(Losses, MixLabelsOfASigmoidAsPyTorch) {
  constexpr std::array<std::int32_t, 3> kTwo{1, 0, 0};
  const std::vector<compute::MixedLabel> mixed{
      {0, 0.75f, 0.25f}, {0, 0.5f, 0.5f}, {1, 0.875f, 0.125f}};
  const auto [loss, slopes] =
      mean_loss(model::SigmoidCrossEntropy{}, 1, {kTwo, mixed}, {0.5, -1.25, 2.0});
  EXPECT_NEAR(loss, 0.9093113588561508, 1e-12);
  expect_near(slopes, {-0.04251355626604847, 0.07423337960843628, 0.25193235932596075});
}

/// -sum t log p and its slopes, where t is the sum of both labels' smoothed targets; one logit is
/// the second of two, of which the first is 0.
LossAndSlopes formula(int logits, const Targets& targets, const std::vector<double>& z) {
  const int classes = std::max(logits, 2);
  const std::size_t images = targets.labels.size();
  LossAndSlopes made{0, {}};
  for (std::size_t n = 0; n < images; ++n) {
    const auto logit = [&](int c) {
      return logits == 1 ? c * z[n] : z[n * 4 + static_cast<std::size_t>(c)];
    };
    double largest = logit(0), sum = 0;
    for (int c = 1; c < classes; ++c) largest = std::max(largest, logit(c));
    for (int c = 0; c < classes; ++c) sum += std::exp(logit(c) - largest);
    const compute::MixedLabel& mixed = targets.mixed[n];
    const double own = mixed.own, others = mixed.others, s = targets.smoothing;
    for (int c = 0; c < classes; ++c) {
      const double t = (1 - s) * (own * (c == targets.labels[n]) + others * (c == mixed.other)) +
                       s / classes * (own + others);
      made.loss -= t * (logit(c) - largest - std::log(sum)) / static_cast<double>(images);
      const double slope = (own + others) * std::exp(logit(c) - largest) / sum - t;
      if (logits > 1 || c == 1) made.slopes.push_back(slope / static_cast<double>(images));
    }
  }
  return made;
}

TEST(Losses, AreTheirFormulasWhereAllComesTogether) {
  const std::vector<compute::MixedLabel> four{{0, 1.125f, 0.375f}, {1, 2, 0}, {3, 0.25f, 0.25f}},
      two{{1, 1.125f, 0.375f}, {0, 0, 0}, {0, 0.25f, 0.5f}};
  constexpr std::array<std::int32_t, 3> kTwo{0, 0, 1};
  for (const double scale : {1.0, 300.0, -300.0}) {  // the last two saturate probabilities
    for (const double smoothing : {0.0, 0.1}) {
      SCOPED_TRACE(testing::Message() << scale << " " << smoothing);
      std::vector<double> z = kLogits;
      for (double& logit : z) logit *= scale;
      const Targets of_four{kLabels, four, smoothing}, of_two{kTwo, two, smoothing};
      const auto softmax = mean_loss(model::SoftmaxCrossEntropy{}, 4, of_four, z);
      EXPECT_NEAR(softmax.loss, formula(4, of_four, z).loss, 1e-12 * std::abs(scale));
      expect_near(softmax.slopes, formula(4, of_four, z).slopes);
      z.resize(3);
      const auto sigmoid = mean_loss(model::SigmoidCrossEntropy{}, 1, of_two, z);
      EXPECT_NEAR(sigmoid.loss, formula(1, of_two, z).loss, 1e-12 * std::abs(scale));
      expect_near(sigmoid.slopes, formula(1, of_two, z).slopes);
    }
  }
}

}  // namespace
}  // namespace cputrain::reference
