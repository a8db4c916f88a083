#include "backends/cpu/sparse/first_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/random/random.h"
#include "tests/backends/cpu/each_instruction_set.h"
#include "tests/backends/cpu/numbers.h"

/// The first layer's own kernels against plain loops in double, with every instruction set that
/// this machine has (AVX2 and plain have blocks of 8 channels).
namespace cputrain::cpu::first_layer_test {
namespace {

using first_layer::Shape;

std::vector<float> numbers(std::size_t n, std::uint32_t seed) {
  const RandomStream stream(seed, Purpose::weights, 3);
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = 2 * unit_float(stream.at(static_cast<std::uint32_t>(i))[0]) - 1;
  }
  return values;
}

/// Small integers, so that float sums are exact and windows have ties.
std::vector<float> integers(std::size_t n, std::uint32_t seed) {
  std::vector<float> values = numbers(n, seed);
  for (float& value : values) value = std::round(2 * value);
  return values;
}

std::vector<std::uint8_t> bytes(std::size_t n, int most) {
  const RandomStream stream(9, Purpose::pixels, 3);
  std::vector<std::uint8_t> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<std::uint8_t>(
        static_cast<float>(most) * unit_float(stream.at(static_cast<std::uint32_t>(i))[0]) + 0.5f);
  }
  return values;
}

struct Problem {
  Shape shape;
  std::vector<std::uint8_t> sample;
  std::vector<float> weights;  ///< [channel][tap]
  std::vector<float> bias, diff;

  std::size_t windows() const {
    return static_cast<std::size_t>(shape.window_rows() * shape.window_columns());
  }
  std::size_t channels() const { return static_cast<std::size_t>(shape.channels); }
  std::size_t outputs() const { return channels() * windows(); }
};

enum class Numbers { any, small_integers };

Problem make(const Shape& shape, Numbers kind) {
  Problem p{shape,
            bytes(static_cast<std::size_t>(shape.height * shape.width * 3),
                  kind == Numbers::any ? 255 : 3),
            {},
            {},
            {}};
  const auto draw = kind == Numbers::any ? numbers : integers;
  p.weights = draw(p.channels() * 27, 1);
  p.bias = draw(p.channels(), 2);
  p.diff = draw(p.outputs(), 3);
  return p;
}

/// By channel, then window.
struct Results {
  std::vector<double> dst, winners;
  std::vector<double> diff_weights;  ///< [channel][tap]
  std::vector<double> diff_bias;
};

/// Number `colour` of a pixel, of the padded image.
double pixel(const Problem& p, int y, int x, int colour) {
  const Shape& s = p.shape;
  y -= s.rows.before;
  x -= s.columns.before;
  if (y < 0 || x < 0 || y >= s.height || x >= s.width) return 0;
  return static_cast<double>(p.sample[static_cast<std::size_t>((y * s.width + x) * 3 + colour)]) *
             static_cast<double>(s.scale.of[colour]) +
         static_cast<double>(s.offset.of[colour]);
}

/// f(tap, number) for the 27 numbers that an output of the convolution sees.
template <class F>
void for_taps(const Problem& p, int y, int x, const F& f) {
  for (int tap = 0; tap < 27; ++tap) {
    f(static_cast<std::size_t>(tap), pixel(p, y + tap / 9, x + tap / 3 % 3, tap % 3));
  }
}

/// The plain loops. The gradient goes where `winners` says, because rounding may decide a tie; so
/// does ReLU's decision, which `dst` (float's) made.
Results expected(const Problem& p, const Results& computed) {
  Results results;
  results.diff_weights.resize(p.weights.size());
  results.diff_bias.resize(p.channels());
  const int columns = p.shape.window_columns();
  for (std::size_t c = 0; c < p.channels(); ++c) {
    for (std::size_t window = 0; window < p.windows(); ++window) {
      const int y = static_cast<int>(window) / columns * 2,
                x = static_cast<int>(window) % columns * 2;
      double best = -std::numeric_limits<double>::infinity();
      int winner = 0;
      for (int i = 0; i < 4; ++i) {
        double sum = p.bias[c];
        for_taps(p, y + i / 2, x + i % 2, [&](std::size_t tap, double number) {
          sum += number * static_cast<double>(p.weights[c * 27 + tap]);
        });
        if (sum > best) winner = i;
        best = std::max(best, sum);
      }
      results.dst.push_back(p.shape.relu ? std::max(best, 0.0) : best);
      results.winners.push_back(winner);
      const std::size_t at = c * p.windows() + window;
      if (p.shape.relu && computed.dst[at] <= 0) continue;
      const double diff = p.diff[at];
      const int chosen = static_cast<int>(computed.winners[at]);
      for_taps(p, y + chosen / 2, x + chosen % 2, [&](std::size_t tap, double number) {
        results.diff_weights[c * 27 + tap] += diff * number;
      });
      results.diff_bias[c] += diff;
    }
  }
  return results;
}

/// Between [channel][i] and the kernels' layouts, [channel / b][i][channel % b].
template <class To, class From>
std::vector<To> to_blocks(const std::vector<From>& plain, std::size_t channels, std::size_t b) {
  const std::size_t size = plain.size() / channels;
  std::vector<To> blocked(plain.size());
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < size; ++i) {
      blocked[(c / b * size + i) * b + c % b] = static_cast<To>(plain[c * size + i]);
    }
  }
  return blocked;
}

template <class From>
std::vector<double> from_blocks(const std::vector<From>& blocked, std::size_t channels,
                                std::size_t b) {
  const std::size_t size = blocked.size() / channels;
  std::vector<double> plain(blocked.size());
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < size; ++i) {
      plain[c * size + i] = static_cast<double>(blocked[(c / b * size + i) * b + c % b]);
    }
  }
  return plain;
}

/// The kernels on two ranges of rows, the gradients added to `before`.
Results run(InstructionSet set, const Problem& p, float before = 0) {
  const Shape& s = p.shape;
  const auto b = static_cast<std::size_t>(first_layer::block(set));
  const auto weights = to_blocks<float>(p.weights, p.channels(), b);
  const auto diff = to_blocks<float>(p.diff, p.channels(), b);
  // NaN shows what is not written, and what is read from scratch without being written.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> scratch(first_layer::scratch_size(s), nan), dst(p.outputs(), nan);
  std::vector<std::uint8_t> winners(p.outputs(), 255);
  std::vector<float> sums(first_layer::sums_size(s));
  const int middle = s.window_rows() / 2, end = s.window_rows();
  for (const auto& [from, to] : {std::pair{middle, end}, {0, middle}}) {
    first_layer::forward(set, s, p.sample.data(), weights.data(), p.bias.data(), from, to,
                         scratch.data(), dst.data(), winners.data());
  }
  std::ranges::fill(scratch, nan);
  for (const auto& [from, to] : {std::pair{middle, end}, {0, middle}}) {
    first_layer::backward_weights(set, s, p.sample.data(),
                                  {dst.data(), winners.data(), diff.data()}, from, to,
                                  scratch.data(), sums.data());
  }
  std::vector<float> diff_weights(weights.size(), before), diff_bias(p.channels(), before);
  first_layer::write_gradients(set, s, sums.data(), before != 0, diff_weights.data(),
                               diff_bias.data());
  return {from_blocks(dst, p.channels(), b), from_blocks(winners, p.channels(), b),
          from_blocks(diff_weights, p.channels(), b), from_blocks(diff_bias, p.channels(), b)};
}

void expect_close(const Problem& p, const Results& results) {
  const Results right = expected(p, results);
  EXPECT_LE(distance(results.dst, right.dst), 1e-6);
  EXPECT_LE(distance(results.diff_weights, right.diff_weights), 1e-5);
  EXPECT_LE(distance(results.diff_bias, right.diff_bias), 1e-5);
}

void expect_exact(const Problem& p, const Results& results) {
  const Results right = expected(p, results);
  EXPECT_EQ(results.dst, right.dst);
  EXPECT_EQ(results.winners, right.winners);
  EXPECT_EQ(results.diff_weights, right.diff_weights);
  EXPECT_EQ(results.diff_bias, right.diff_bias);
}

Shape shape_of(int height, int width, int pad, int channels) {
  return {height,
          width,
          {pad, pad},
          {pad, pad},
          channels,
          {1.0f / 255, 1.0f / 128, 0.003f},
          {-0.25f, 0, 0.5f},
          true};
}

class FirstLayer : public EachInstructionSet {};

TEST_P(FirstLayer, ComputesLikePlainLoops) {
  for (const auto& [height, width] : {std::pair{21, 23}, {8, 40}, {9, 7}, {6, 71}}) {
    for (const int pad : {0, 1, 2}) {
      for (const int channels : {16, 32, 48}) {
        SCOPED_TRACE(::testing::Message() << height << " x " << width << ", padding " << pad << ", "
                                          << channels << " channels");
        const Problem p = make(shape_of(height, width, pad, channels), Numbers::any);
        expect_close(p, run(GetParam(), p));
      }
    }
  }
}

/// Winners of ties, too: the first of the largest.
TEST_P(FirstLayer, IsExactForSmallIntegers) {
  for (const bool relu : {false, true}) {
    Shape shape = shape_of(19, 38, 1, 32);
    shape.scale = 1;
    shape.offset = 0;
    shape.relu = relu;
    const Problem p = make(shape, Numbers::small_integers);
    expect_exact(p, run(GetParam(), p));
    Problem flat = p;
    std::ranges::fill(flat.sample, std::uint8_t{1});
    const Results results = run(GetParam(), flat);
    expect_exact(flat, results);
    // Away from the padding all four are equal.
    const auto inside = static_cast<std::size_t>(2 * shape.window_columns() + 2);
    EXPECT_EQ(results.winners[inside], 0);
  }
}

TEST_P(FirstLayer, PaddingOnOneSide) {
  Shape shape = shape_of(12, 13, 0, 16);
  shape.rows = {0, 1};
  shape.columns = {1, 0};
  shape.scale = 1;
  shape.offset = 0;
  const Problem p = make(shape, Numbers::small_integers);
  expect_exact(p, run(GetParam(), p));
}

TEST_P(FirstLayer, OneWindow) {
  const Problem p = make(shape_of(4, 4, 0, 16), Numbers::any);
  expect_close(p, run(GetParam(), p));
  const Problem padded = make(shape_of(3, 2, 1, 16), Numbers::any);
  expect_close(padded, run(GetParam(), padded));
}

TEST_P(FirstLayer, AllDeadAndNoneDead) {
  Problem p = make(shape_of(16, 40, 0, 16), Numbers::any);
  std::ranges::fill(p.bias, -100.0f);
  const Results dead = run(GetParam(), p);
  EXPECT_EQ(std::ranges::count(dead.dst, 0.0), static_cast<std::ptrdiff_t>(p.outputs()));
  EXPECT_EQ(std::ranges::count(dead.diff_weights, 0.0), 16 * 27);
  EXPECT_EQ(std::ranges::count(dead.diff_bias, 0.0), 16);
  std::ranges::fill(p.bias, 100.0f);
  const Results alive = run(GetParam(), p);
  EXPECT_GT(std::ranges::min(alive.dst), 0);
  expect_close(p, alive);
}

TEST_P(FirstLayer, AddsToGradients) {
  const Problem p = make(shape_of(11, 30, 1, 16), Numbers::any);
  const Results fresh = run(GetParam(), p), added = run(GetParam(), p, 2);
  for (std::size_t i = 0; i < fresh.diff_weights.size(); ++i) {
    EXPECT_NEAR(added.diff_weights[i], fresh.diff_weights[i] + 2, 1e-4);
  }
  for (std::size_t c = 0; c < fresh.diff_bias.size(); ++c) {
    EXPECT_NEAR(added.diff_bias[c], fresh.diff_bias[c] + 2, 1e-4);
  }
}

/// As in the other kernels: NaN behind a ReLU stays, so that divergence is seen.
TEST_P(FirstLayer, NanPassesForwardAndInGradients) {
  Problem p = make(shape_of(8, 10, 0, 16), Numbers::any);
  std::ranges::fill(p.bias, 100.0f);
  p.diff[5 * p.windows() + 1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(run(GetParam(), p).diff_bias[5]));
  p.weights[7 * 27] = std::numeric_limits<float>::quiet_NaN();
  const Results results = run(GetParam(), p);
  EXPECT_TRUE(std::isnan(results.dst[7 * p.windows()]));
  EXPECT_FALSE(std::isnan(results.dst[6 * p.windows()]));
}

INSTANTIATE_TEST_SUITE_P(AllSets, FirstLayer, all_instruction_sets(), name_of_set);

}  // namespace
}  // namespace cputrain::cpu::first_layer_test
