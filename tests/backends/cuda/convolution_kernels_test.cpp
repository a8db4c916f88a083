#include "tests/backends/cuda/convolution_trial.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "core/casts.h"

namespace cputrain::cuda {
namespace {

constexpr double kTolerance = 1e-5;
/// In outputs instead of NaN the second time: a number that bf16 has.
constexpr float kHuge = 0x1p100f;

/// What sums may differ by, as parts of the sums. Tensor cores cut a sum off once per instruction
/// (exact makes up for that), and a map's numbers are rounded.
double tolerance(Numbers numbers, int depth) {
  if (numbers == Numbers::exact) return kTolerance;
  return 1e-6 + depth / 8 * std::ldexp(1, -23);
}

/// A case on a device with so many multiprocessors: 1 is given few, large pieces of work, 132 (an
/// H100's) tiles and slices as many as there may be.
class Convolution : public testing::TestWithParam<std::tuple<ConvolutionCase, int, Numbers>> {
 protected:
  const Numbers numbers = std::get<2>(GetParam());
  const ConvolutionTrial trial{std::get<0>(GetParam()), -1, numbers};
  const int multiprocessors = std::get<1>(GetParam());

  void expect_close(const Floats& actual, const Doubles& expected, int channels, int depth,
                    double rounding = 0) const {
    without_padding(actual, channels);
    EXPECT_LE(distance(actual, expected), tolerance(numbers, depth) + rounding);
  }
  void expect_map(const Floats& actual, const Doubles& expected, int channels, int depth) const {
    EXPECT_EQ(rounded(numbers, actual), actual);
    expect_close(actual, expected, channels, depth, unit_roundoff(numbers));
  }
  /// Rows of padded output channels are zero, too.
  void expect_no_weights_of_padding(const Floats& weights) const {
    const auto taps = static_cast<std::size_t>(trial.shape().taps());
    for (auto i = static_cast<std::size_t>(trial.outputs()) * taps; i < weights.size(); ++i) {
      ASSERT_EQ(weights[i], 0.0f) << "padding at " << i;
    }
  }
};

TEST_P(Convolution, Forward) {
  const Floats dst = trial.forward(multiprocessors, kNaN);
  expect_map(dst, reference_forward(trial.shape(), trial.src(), trial.weights(), trial.bias()),
             trial.outputs(), trial.shape().taps());
  if (multiprocessors > 1) {
    EXPECT_TRUE(same_bits(dst, trial.forward(multiprocessors, kHuge)));
  }
}

TEST_P(Convolution, BackwardData) {
  const Floats diff = trial.data(multiprocessors, kNaN);
  Doubles expected = reference_data(trial.shape(), trial.diff_dst(), trial.weights());
  const int depth = trial.shape().size * trial.shape().size * trial.shape().dst.channels;
  expect_map(diff, expected, trial.channels(), depth);
  if (multiprocessors > 1) {
    EXPECT_TRUE(same_bits(diff, trial.data(multiprocessors, kHuge)));
  }

  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += trial.src()[i];
  expect_map(trial.data(multiprocessors, kNaN, &trial.src()), expected, trial.channels(), depth);
}

TEST_P(Convolution, BackwardWeights) {
  const auto gradients = trial.gradients(multiprocessors, kNaN);
  Doubles weights = reference_weights(trial.shape(), trial.src(), trial.diff_dst());
  Doubles bias = reference_bias(trial.shape(), trial.diff_dst());
  const int windows = trial.shape().windows();
  expect_close(std::get<0>(gradients), weights, trial.channels(), windows);
  expect_close(std::get<1>(gradients), bias, trial.outputs(), windows);
  expect_no_weights_of_padding(std::get<0>(gradients));
  if (multiprocessors > 1) {
    EXPECT_TRUE(same_bits(gradients, trial.gradients(multiprocessors, kHuge)));
  }

  const ConvolutionTrial::Gradients before{trial.weights(), trial.bias()};
  const auto [more_weights, more_bias] = trial.gradients(multiprocessors, kNaN, &before);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] += trial.weights()[i];
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] += trial.bias()[i];
  expect_close(more_weights, weights, trial.channels(), windows);
  expect_close(more_bias, bias, trial.outputs(), windows);
}

/// Sums of many slices everywhere, of few in every second case. bf16 has layouts of its own; what
/// tf32 does not share with exact is little.
std::vector<std::tuple<ConvolutionCase, int, Numbers>> trials() {
  std::vector<std::tuple<ConvolutionCase, int, Numbers>> all;
  int number = 0;
  for (const ConvolutionCase& c : convolution_cases()) {
    const bool even = number % 2 == 0;
    all.emplace_back(c, 132, Numbers::exact);
    if (even) all.emplace_back(c, 1, Numbers::exact);
    all.emplace_back(c, even ? 1 : 132, Numbers::bf16);
    if (number % 3 == 0) all.emplace_back(c, even ? 132 : 1, Numbers::tf32);
    ++number;
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, Convolution, testing::ValuesIn(trials()));

/// All products of a convolution by one size of tile.
class TilesOfOneSize {
 public:
  TilesOfOneSize(const TileShape& tile, int slices, const ConvolutionTrial& trial)
      : tile_(tile), slices_(slices), trial_(trial), shape_(trial.shape()) {}

  Floats forward(const Floats* added = nullptr, Floats* moments = nullptr) const {
    return trial_.forward(plan(forward_extent(shape_)), kNaN, true, added, moments);
  }
  Floats data(const Floats* before = nullptr, Floats* slopes = nullptr) const {
    return trial_.data(plan(data_extent(shape_)), kNaN, before, slopes);
  }
  ConvolutionTrial::Gradients gradients() const {
    return trial_.gradients(plan(weights_extent(shape_)), kNaN);
  }

 private:
  ConvolutionPlan plan(const GemmExtent& e) const {
    const GemmPlan cut = plan_by_tile(e, tile_, slices_);
    return {cut, cut, cut, most_bias_parts(cut)};
  }

  TileShape tile_;
  int slices_;
  const ConvolutionTrial& trial_;
  const WindowShape& shape_;
};

void expect_all_tiles_right(Numbers numbers, int stride) {
  const ConvolutionTrial trial({1, 7, 5, 72, 40, 2, stride}, -1, numbers);
  const WindowShape& s = trial.shape();
  const double limit = tolerance(numbers, s.taps());
  const double of_map = limit + unit_roundoff(numbers);
  const TilesOfOneSize square(kTile64x64, 2, trial);
  const Floats dst = square.forward(), diff = square.data();
  EXPECT_LE(distance(dst, reference_forward(s, trial.src(), trial.weights(), trial.bias())),
            of_map);
  EXPECT_LE(distance(diff, reference_data(s, trial.diff_dst(), trial.weights())), of_map);
  for (const TileShape& tile : kTiles) {
    if (!has_kernels(tile, numbers, true)) continue;
    SCOPED_TRACE(testing::PrintToString(tile));
    const TilesOfOneSize tiles(tile, 2, trial);
    EXPECT_TRUE(same_bits(dst, tiles.forward()));
    EXPECT_TRUE(same_bits(diff, tiles.data()));
  }
  const Floats weights = std::get<0>(square.gradients());
  EXPECT_LE(distance(weights, reference_weights(s, trial.src(), trial.diff_dst())), limit);
  for (const TileShape& tile : kTiles) {
    if (!has_kernels(tile, numbers, false)) continue;
    SCOPED_TRACE(testing::PrintToString(tile));
    const auto [others, bias] = TilesOfOneSize(tile, 2, trial).gradients();
    EXPECT_TRUE(same_bits(weights, others));
    EXPECT_LE(distance(bias, reference_bias(s, trial.diff_dst())), limit);
  }
}

/// Every tile of every precision in every direction, over rows and columns that end in the middle
/// of it, slices, and several parts. Sums have the same order, and bits, in all of them.
TEST(ConvolutionTiles, AllAreRight) {
  for (const Numbers numbers : kAllNumbers) {
    for (const int stride : {1, 2}) expect_all_tiles_right(numbers, stride);
  }
}

/// With the bits of an addition by itself, where it is not rounded in between.
TEST(ConvolutionTiles, AddAnotherMapAsTheyStore) {
  for (const Numbers numbers : kAllNumbers) {
    const ConvolutionTrial trial({1, 7, 5, 72, 21, 2, 1}, -1, numbers);
    const WindowShape& s = trial.shape();
    Doubles expected = reference_forward(s, trial.src(), trial.weights(), trial.bias());
    const Floats added = rounded(numbers, random_floats(expected.size(), 9, -1));
    std::ranges::transform(expected, added, expected.begin(), std::plus());
    for (const TileShape& tile : kTiles) {
      if (!has_kernels(tile, numbers, true)) continue;
      for (const int slices : {1, 2}) {
        SCOPED_TRACE(testing::PrintToString(tile) + " in " + std::to_string(slices));
        const TilesOfOneSize tiles(tile, slices, trial);
        const Floats sum = tiles.forward(&added);
        EXPECT_LE(distance(sum, expected), tolerance(numbers, s.taps()) + unit_roundoff(numbers));
        if (numbers != Numbers::exact) continue;
        Floats apart = tiles.forward();
        std::ranges::transform(apart, added, apart.begin(), std::plus());
        EXPECT_TRUE(same_bits(sum, apart));
      }
    }
  }
}

/// Calls f(part, its first row, the row behind its last) for the parts of a map of so many rows.
template <class F>
void for_parts(std::size_t rows, int of_part, const F& f) {
  const auto step = static_cast<std::size_t>(of_part);
  for (std::size_t begin = 0; begin < rows; begin += step) {
    f(begin / step, begin, std::min(rows, begin + step));
  }
}

/// Row number `row` of a matrix.
Floats row_of(const Floats& matrix, std::size_t row, std::size_t columns) {
  const auto first = matrix.begin() + static_cast<std::ptrdiff_t>(row * columns);
  return {first, first + static_cast<std::ptrdiff_t>(columns)};
}

/// Moments are those of what is stored, to the rounding of floats, also where a spread is small.
TEST(ConvolutionTiles, MakeMomentsOfWhatTheyStore) {
  for (const Numbers numbers : kAllNumbers) {
    const ConvolutionTrial trial({3, 11, 13, 16, 45, 1, 1}, -1, numbers);
    constexpr std::size_t kChannels = 48, kRows = 3 * 11 * 13;
    const Floats added = rounded(numbers, random_floats(kRows * kChannels, 9, 29, 31));
    for (const TileShape& tile : kTiles) {
      if (!has_kernels(tile, numbers, true)) continue;
      SCOPED_TRACE(testing::PrintToString(tile));
      const TilesOfOneSize tiles(tile, 1, trial);
      Floats moments;
      const Floats dst = tiles.forward(&added, &moments);
      EXPECT_TRUE(same_bits(dst, tiles.forward(&added)));
      ASSERT_EQ(moments.size(), pieces(kRows, to_size(tile.rows)) * 2 * kChannels);
      for_parts(kRows, tile.rows, [&](std::size_t part, std::size_t begin, std::size_t end) {
        Doubles means(kChannels), squares(kChannels);
        for (std::size_t i = begin * kChannels; i < end * kChannels; ++i) {
          means[i % kChannels] += dst[i] / static_cast<double>(end - begin);
        }
        for (std::size_t i = begin * kChannels; i < end * kChannels; ++i) {
          squares[i % kChannels] += std::pow(dst[i] - means[i % kChannels], 2);
        }
        EXPECT_LE(distance(row_of(moments, 2 * part, kChannels), means), 1e-6) << part;
        EXPECT_LE(distance(row_of(moments, 2 * part + 1, kChannels), squares), 1e-5) << part;
      });
    }
  }
}

TEST(ConvolutionTiles, MakeSlopesOfWhatTheyStore) {
  for (const Numbers numbers : kAllNumbers) {
    const ConvolutionTrial trial({3, 11, 13, 45, 16, 1, 1}, -1, numbers);
    constexpr std::size_t kChannels = 48, kRows = 3 * 11 * 13;
    const Floats factors = trial.factors();
    const auto row = [&](ChannelFactors::Row r) { return row_of(factors, r, kChannels); };
    const Floats mean = row(ChannelFactors::mean), scale = row(ChannelFactors::scale),
                 shift = row(ChannelFactors::shift);
    const Floats before = rounded(numbers, random_floats(kRows * kChannels, 9));
    for (const TileShape& tile : kTiles) {
      if (!has_kernels(tile, numbers, true)) continue;
      SCOPED_TRACE(testing::PrintToString(tile));
      const TilesOfOneSize tiles(tile, 1, trial);
      Floats slopes;
      const Floats diff = tiles.data(&before, &slopes);
      EXPECT_TRUE(same_bits(diff, tiles.data(&before)));
      ASSERT_EQ(slopes.size(), pieces(kRows, to_size(tile.rows)) * 2 * kChannels);
      for_parts(kRows, tile.rows, [&](std::size_t part, std::size_t begin, std::size_t end) {
        Doubles sums(kChannels), products(kChannels);
        for (std::size_t i = begin * kChannels; i < end * kChannels; ++i) {
          const std::size_t c = i % kChannels;
          const double apart = static_cast<double>(trial.src()[i]) - mean[c];
          if (apart * scale[c] + shift[c] <= 0) continue;
          sums[c] += diff[i];
          products[c] += diff[i] * apart;
        }
        EXPECT_LE(distance(row_of(slopes, 2 * part, kChannels), sums), 1e-5) << part;
        EXPECT_LE(distance(row_of(slopes, 2 * part + 1, kChannels), products), 1e-5) << part;
      });
    }
  }
}

/// The tile of 256 rows has a table of 16 steps, which it writes anew for the 17th and the 33rd.
TEST(ConvolutionTiles, TablesOf256RowsAreWrittenAnew) {
  for (const Numbers numbers : {Numbers::tf32, Numbers::bf16}) {
    const int of_step = kStepBytes / stored_bytes(numbers);
    for (const int steps : {16, 17, 33}) {
      const ConvolutionTrial trial({1, 20, 10, steps * of_step / 4, 40, 2, 1}, -1, numbers);
      const WindowShape& s = trial.shape();
      ASSERT_EQ(steps_of(forward_extent(s), numbers), steps);
      const TilesOfOneSize square(kTile64x64, 1, trial);
      const TilesOfOneSize tiles(kTile256x64, 1, trial);
      EXPECT_TRUE(same_bits(square.forward(), tiles.forward())) << steps;
    }
  }
}

TEST(ConvolutionForward, HasNoBiasWhereThereIsNone) {
  for (const int multiprocessors : {1, 132}) {
    const ConvolutionTrial trial({3, 5, 7, 72, 21, 3, 1});
    const Floats none(trial.bias().size());
    EXPECT_LE(distance(trial.forward(multiprocessors, kNaN, false),
                       reference_forward(trial.shape(), trial.src(), trial.weights(), none)),
              kTolerance);
  }
}

/// The longest sums of the paper's network, of numbers that cancel and of numbers that do not.
TEST(ConvolutionForward, SumsOf25088ProductsAreExact) {
  for (const auto& [low, multiprocessors] : {std::pair{-1.0f, 132}, {0.0f, 1}}) {
    const ConvolutionTrial trial({3, 1, 1, 25088, 21, 1, 1}, low);
    EXPECT_LE(
        distance(trial.forward(multiprocessors, kNaN),
                 reference_forward(trial.shape(), trial.src(), trial.weights(), trial.bias())),
        kTolerance);
  }
}

TEST(ConvolutionBackward, WeightsOfManyWindowsAreExact) {
  for (const auto& [low, multiprocessors] : {std::pair{-1.0f, 132}, {0.0f, 1}}) {
    const ConvolutionTrial trial({3, 61, 59, 3, 8, 3, 1}, low);
    const auto [weights, bias] = trial.gradients(multiprocessors, kNaN);
    EXPECT_LE(distance(weights, reference_weights(trial.shape(), trial.src(), trial.diff_dst())),
              kTolerance);
    EXPECT_LE(distance(bias, reference_bias(trial.shape(), trial.diff_dst())), kTolerance);
  }
}

/// No product with what lies beside a window: NaN of a neighbour would come in.
TEST(ConvolutionForward, ReadsNothingButItsWindow) {
  ConvolutionTrial trial({1, 9, 9, 8, 8, 3, 1, model::Padding::valid});
  Floats src = trial.src();
  src[0] = kNaN;  // of the first window alone
  const Floats dst = trial.with_src(src).forward(1, 0);
  for (std::size_t i = 0; i < dst.size(); ++i) EXPECT_EQ(std::isnan(dst[i]), i < 8) << i;
}

TEST(ConvolutionForward, IsCutAsItsPlanSays) {
  const ConvolutionTrial trial({3, 1, 1, 2048, 21, 1, 1});
  ConvolutionPlan plan = plan_convolution(trial.shape(), Numbers::exact, 1);
  plan.forward.slices = 1;
  const Floats whole = trial.forward(plan, kNaN);
  plan.forward.slices = 5;
  const Floats sliced = trial.forward(plan, kNaN);
  EXPECT_FALSE(same_bits(whole, sliced));  // other sums are rounded
  const Doubles expected =
      reference_forward(trial.shape(), trial.src(), trial.weights(), trial.bias());
  for (const Floats& dst : {whole, sliced}) EXPECT_LE(distance(dst, expected), kTolerance);
}

/// One position of the map is infinite or NaN: its window has no number, all others have theirs. Of
/// the last NaN the tensor core, which lacks the lower 13 bits, sees an infinity.
TEST(ConvolutionForward, InfinitiesAndNaNBecomeNaN) {
  ConvolutionTrial trial({1, 4, 4, 8, 8, 1, 1});
  Floats src = trial.src();
  for (const unsigned bits : {0x7f800000u, 0x7fc00000u, 0x7f800001u}) {
    src[3] = std::bit_cast<float>(bits);
    const Floats dst = trial.with_src(src).forward(1, 0);
    for (std::size_t i = 0; i < dst.size(); ++i) EXPECT_EQ(std::isnan(dst[i]), i < 8) << bits << i;
  }
}

/// Splitting a number makes none of its parts larger: the largest floats come out finite.
TEST(ConvolutionForward, TheLargestFloatsStayFinite) {
  ConvolutionTrial trial({1, 1, 1, 8, 8, 1, 1});
  constexpr float kLargest = std::numeric_limits<float>::max();
  Floats src(8), weights(64);
  src[5] = kLargest;
  for (std::size_t i = 0; i < 8; ++i) weights[8 * i + 5] = i % 2 == 0 ? 1.0f : -0.5f;
  const Floats dst = trial.with_src(src).with_weights(weights).forward(1, 0, false);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(dst[i] / kLargest, weights[8 * i + 5], 1e-6) << i;
  }
}

}  // namespace
}  // namespace cputrain::cuda
