#include "backends/cuda/kernels/batch_norm/batch_norm.h"

#include <algorithm>
#include <string>

#include "backends/cuda/selftest/plain_batch_norm.h"
#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

constexpr double kEpsilon = 1e-3, kMomentum = 0.9;

struct NormCase {
  int positions, channels, multiprocessors;
  bool relu = false, other = false, add = false;

  std::size_t count() const {
    return static_cast<std::size_t>(positions) * static_cast<std::size_t>(channels);
  }
  std::string name() const {
    return std::to_string(positions) + " positions of " + std::to_string(channels) + " channels" +
           (other ? ", with addition" : "") + (relu ? ", with ReLU" : "");
  }
};

/// One position; fewer channels than a block; many; 7 parts, the last one not full.
const NormCase kCases[] = {{1, 3, 4, true, true},         {1, 2048, 4},
                           {2, 1, 132, false, true},      {5, 2048, 4, true, false, true},
                           {35, 21, 1, true, true, true}, {891, 8, 4, true, false, true},
                           {891, 5, 4, true, true},       {1000, 40, 16, false, false, true},
                           {4099, 3, 132, true}};

/// A layer on the device whose arrays have what nobody reads behind them.
class BatchNormTrial {
 public:
  BatchNormTrial(Numbers numbers, const NormCase& c, const BatchNormNumbers& n)
      : numbers_(numbers),
        case_(c),
        padded_(padded_channels(c.channels)),
        gamma_(with_padding(n.gamma, c.channels)),
        beta_(with_padding(n.beta, c.channels)),
        src_(map_of(n.src)),
        other_(map_of(n.other)),
        diff_dst_(map_of(n.diff_dst)),
        dst_(DeviceMap::poisoned(numbers, stored_count())),
        diff_src_(n.before.empty() ? DeviceMap::poisoned(numbers, stored_count())
                                   : map_of(n.before)),
        diff_gamma_(DeviceArray<float>::poisoned(lanes())),
        diff_beta_(DeviceArray<float>::poisoned(lanes())),
        moving_mean_(std::vector<float>(lanes(), 0)),
        moving_variance_(one_where_there_is_a_channel()),
        factors_(DeviceArray<float>::poisoned(ChannelFactors::kRows * lanes())),
        moved_(std::vector<MovedStatistic>(static_cast<std::size_t>(c.channels))),
        sums_(plan_channel_sums(numbers, c.positions, padded_, c.multiprocessors)),
        values_(DeviceArray<float>::poisoned(sums_.count())) {
    sums_.values = values_.data();
  }

  BatchNormLayer layer() const {
    return {case_.channels,         kEpsilon,     kMomentum,
            gamma_.data(),          beta_.data(), moving_mean_.data(),
            moving_variance_.data()};
  }
  ChannelFactors factors() const { return {factors_.data(), padded_}; }
  const ChannelSums& sums() const { return sums_; }
  Stream stream() const { return test_stream().get(); }

  void measure() {
    measure_channels(stream(), numbers_, sums_, src_.data());
    finish_statistics(stream(), sums_, layer(), factors(), moved_.data());
  }
  void forward() {
    normalize(stream(), numbers_, pass(case_.relu), src_.data(),
              case_.other ? other_.data() : nullptr, dst_.data());
  }
  void slopes(bool add = false) {
    sum_slopes(stream(), numbers_,
               {sums_, pass(case_.relu), src_.data(), masks() ? dst_.data() : nullptr},
               diff_dst_.data());
    finish_slopes(stream(), sums_, factors(), {diff_gamma_.data(), diff_beta_.data(), add});
  }
  void backward() {
    normalize_backward(stream(), numbers_, pass(case_.relu && !masks()), src_.data(),
                       diff_dst_.data(), diff_src_.data(), case_.add);
  }
  void publish() { publish_statistics(stream(), case_.channels, moved_.data()); }

  std::vector<float> dst() const { return dense(dst_); }
  std::vector<float> diff_src() const { return dense(diff_src_); }
  std::vector<float> diff_dst() const { return dense(diff_dst_); }
  std::vector<float> of(const DeviceArray<float>& array) const {
    return without_padding(array.read(), case_.channels);
  }
  std::vector<float> diff_gamma() const { return of(diff_gamma_); }
  std::vector<float> diff_beta() const { return of(diff_beta_); }
  std::vector<float> moving_mean() const { return of(moving_mean_); }
  std::vector<float> moving_variance() const { return of(moving_variance_); }
  std::vector<double> merged() const {
    const auto values = DeviceArray<double>::poisoned(2 * lanes());
    merge_moments(stream(), sums_, values.data());
    return values.read();
  }

 private:
  bool masks() const { return case_.other && case_.relu; }
  std::size_t lanes() const { return static_cast<std::size_t>(padded_); }
  std::size_t stored_count() const { return static_cast<std::size_t>(case_.positions) * lanes(); }
  DeviceMap map_of(const std::vector<float>& values) const {
    return {numbers_, with_padding(values, case_.channels)};
  }
  std::vector<float> dense(const DeviceMap& map) const {
    return without_padding(map.read(), case_.channels);
  }
  std::vector<float> one_where_there_is_a_channel() const {
    return with_padding(std::vector<float>(static_cast<std::size_t>(case_.channels), 1),
                        case_.channels);
  }
  BatchNormPass pass(bool relu) const { return {case_.positions, factors(), relu}; }

  Numbers numbers_;
  NormCase case_;
  int padded_;
  DeviceArray<float> gamma_, beta_;
  DeviceMap src_, other_, diff_dst_, dst_, diff_src_;
  DeviceArray<float> diff_gamma_, diff_beta_, moving_mean_, moving_variance_, factors_;
  DeviceArray<MovedStatistic> moved_;
  ChannelSums sums_;
  DeviceArray<float> values_;
};

/// Numbers around `centre`, as they are stored.
BatchNormNumbers numbers_of(Numbers numbers, const NormCase& c, float centre = 0.5f) {
  const auto channels = static_cast<std::size_t>(c.channels);
  BatchNormNumbers n{.gamma = random_floats(channels, 1, 0.5f, 1.5f),
                     .beta = random_floats(channels, 2),
                     .src = rounded(numbers, random_floats(c.count(), 3, centre - 1, centre + 1)),
                     .diff_dst = rounded(numbers, random_floats(c.count(), 4))};
  if (c.other) n.other = rounded(numbers, random_floats(c.count(), 5));
  if (c.add) n.before = rounded(numbers, random_floats(c.count(), 6));
  return n;
}

/// Rounded when it is stored, and of sums in float; `size` is that of the terms.
void expect_near(const char* what, Numbers numbers, const std::vector<float>& actual,
                 const std::vector<double>& expected, double size) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  const double rounding = numbers == Numbers::exact ? 0 : unit_roundoff(numbers);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], rounding * std::abs(expected[i]) + 3e-6 * size)
        << what << " " << i;
  }
}

class BatchNormKernels : public ::testing::TestWithParam<Numbers> {};
INSTANTIATE_TEST_SUITE_P(Numbers, BatchNormKernels, ::testing::ValuesIn(kAllNumbers),
                         [](const auto& test) { return std::string(word_of(test.param)); });

TEST_P(BatchNormKernels, AreLoopsInDouble) {
  for (const NormCase& c : kCases) {
    SCOPED_TRACE(c.name());
    const auto n = numbers_of(GetParam(), c);
    const PlainBatchNorm expected = plain_batch_norm(n, kEpsilon, c.relu);
    const auto [dst, diff_dst, diff_src, diff_gamma, diff_beta] = twice([&] {
      BatchNormTrial trial(GetParam(), c, n);
      trial.measure();
      trial.forward();
      trial.slopes();
      trial.backward();
      return std::tuple(trial.dst(), trial.diff_dst(), trial.diff_src(), trial.diff_gamma(),
                        trial.diff_beta());
    });
    expect_near("dst", GetParam(), dst, expected.dst, 3);
    if (c.other && c.relu) expect_near("cut", Numbers::exact, diff_dst, expected.cut, 0);
    // One value alone is its own mean: what is centred by 1 / sqrt(epsilon) is rounding.
    const double slope = c.positions == 1 ? 60 : 20;
    expect_near("diff_src", GetParam(), diff_src, expected.diff_src, slope);
    expect_near("diff_gamma", Numbers::exact, diff_gamma, expected.diff_gamma, c.positions);
    expect_near("diff_beta", Numbers::exact, diff_beta, expected.diff_beta, c.positions);
  }
}

TEST_P(BatchNormKernels, MeasureSmallSpreadsAroundLargeMeans) {
  const NormCase c{891, 3, 4};
  auto n = numbers_of(Numbers::exact, c);
  for (float& value : n.src) value = 1000 + value * 8;
  n.src = rounded(GetParam(), n.src);
  const PlainBatchNorm expected = plain_batch_norm(n, kEpsilon, false);
  BatchNormTrial trial(GetParam(), c, n);
  ASSERT_EQ(trial.sums().parts, GetParam() == Numbers::bf16 ? 4 : 7);
  trial.measure();
  const auto merged = trial.merged();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(merged[i], expected.mean[i], 1e-4);
    EXPECT_NEAR(merged[8 + i] / c.positions / expected.variance[i], 1, 2e-4);
  }
}

/// On the side, from what was published last; padding has none.
TEST(BatchNormStatistics, MoveOnTheSideUntilTheyArePublished) {
  const NormCase c{35, 21, 1};
  const auto n = numbers_of(Numbers::exact, c);
  const PlainBatchNorm plain = plain_batch_norm(n, kEpsilon, false);
  BatchNormTrial trial(Numbers::exact, c, n);
  std::vector<double> mean(21, 0), variance(21, 1);
  const auto move = [&] {
    trial.measure();
    for (std::size_t i = 0; i < 21; ++i) {
      mean[i] += (plain.mean[i] - mean[i]) * (1 - kMomentum);
      variance[i] += (plain.variance[i] * 35 / 34 - variance[i]) * (1 - kMomentum);
    }
  };
  const auto expect_published = [&] {
    expect_near("mean", Numbers::exact, trial.moving_mean(), mean, 1);
    expect_near("variance", Numbers::exact, trial.moving_variance(), variance, 1);
  };
  expect_published();
  trial.publish();  // nothing was moved
  expect_published();
  move();
  EXPECT_EQ(trial.moving_mean(), std::vector<float>(21, 0));
  move();
  EXPECT_EQ(trial.moving_mean(), std::vector<float>(21, 0));
  trial.publish();
  expect_published();
  move();
  trial.publish();
  expect_published();
}

TEST(BatchNormStatistics, OfOneValueHaveNoUnbiasedVariance) {
  const NormCase c{1, 3, 4};
  BatchNormTrial trial(Numbers::exact, c, numbers_of(Numbers::exact, c));
  trial.measure();
  trial.publish();
  expect_near("variance", Numbers::exact, trial.moving_variance(), std::vector<double>(3, 0.9), 1);
}

/// Frozen, or in evaluation: what is normalised does not depend on the images.
TEST_P(BatchNormKernels, UseMovingStatistics) {
  for (const NormCase& c : {NormCase{35, 21, 1, true, false, true}, NormCase{9, 8, 4}}) {
    const auto n = numbers_of(GetParam(), c);
    const auto channels = static_cast<std::size_t>(c.channels);
    const PlainBatchNorm moving{.mean = std::vector<double>(channels, 0),
                                .variance = std::vector<double>(channels, 1)};
    const PlainBatchNorm expected = plain_batch_norm(n, kEpsilon, c.relu, &moving);
    BatchNormTrial trial(GetParam(), c, n);
    use_moving_statistics(trial.stream(), trial.layer(), trial.factors());
    trial.forward();
    trial.backward();
    expect_near("dst", GetParam(), trial.dst(), expected.dst, 1);
    expect_near("diff_src", GetParam(), trial.diff_src(), expected.diff_src, 1);
  }
}

TEST(BatchNormGradients, AreAddedWhereTheyAreToBe) {
  const NormCase c{35, 21, 1};
  const auto n = numbers_of(Numbers::exact, c);
  const PlainBatchNorm plain = plain_batch_norm(n, kEpsilon, false);
  BatchNormTrial trial(Numbers::exact, c, n);
  trial.measure();
  trial.slopes();
  trial.slopes(true);
  std::vector<double> twofold(plain.diff_gamma);
  for (double& sum : twofold) sum *= 2;
  expect_near("diff_gamma", Numbers::exact, trial.diff_gamma(), twofold, 70);
}

/// Parts cover all positions once, and no more blocks than keep the device busy.
TEST(ChannelSumsPlan, CoversThePositions) {
  for (const Numbers numbers : {Numbers::exact, Numbers::tf32, Numbers::bf16}) {
    for (const int positions : {1, 7, 49, 6272, 1 << 24, (1 << 30) + 1}) {
      for (const int channels : {8, 24, 64, 264, 2048}) {
        const ChannelSums sums = plan_channel_sums(numbers, positions, channels, 132);
        double covered = 0;
        for (int part = 0; part < sums.parts; ++part) {
          EXPECT_GT(sums.positions_of(part), 0);
          covered += sums.positions_of(part);
        }
        EXPECT_EQ(covered, positions);
        EXPECT_LE(sums.parts, 264);
        EXPECT_EQ(sums.count(), static_cast<std::size_t>(2 * sums.parts * channels));
      }
    }
  }
}

}  // namespace
}  // namespace cputrain::cuda
