// Convolutions in tiles of bf16, which are emulated: with integers of a few bits against exact
// sums, and with numbers that are rounded.
#include "backends/cpu/amx/convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/backends/cpu/each_tiles.h"
#include "tests/backends/cpu/exact_convolution.h"
#include "tests/backends/cpu/numbers.h"
#include "tests/backends/cpu/team.h"

namespace cputrain::cpu::amx::amx_convolution_test {
namespace {

class TilesUnderTest {
 public:
  TilesUnderTest(const ExactShape& s, int threads, const Kernels& kernels)
      : tested_({s.src, s.wide, s.dst, s.rows, s.columns, s.pool, s.relu}, threads, kernels),
        memory_(std::max(tested_.pass_bytes(), tested_.gradient_bytes()) + 64) {}

  void forward(int images, const float* src, const float* weights, const float* bias, float* dst,
               std::uint8_t* winners) {
    tested_.forward(images, src, weights, bias, dst, winners, scratch_in(memory_));
  }
  void backward_data(int images, const ExactOutputs& o, const float* weights, float* diff_src,
                     bool adds) {
    tested_.backward_data(images, {o.diff, o.dst, o.winners}, weights, diff_src, adds,
                          scratch_in(memory_));
  }
  void backward_weights(int images, const float* src, const ExactOutputs& o, float* diff_weights,
                        float* diff_bias, bool adds) {
    tested_.backward_weights(images, src, {o.diff, o.dst, o.winners}, diff_weights, diff_bias, adds,
                             scratch_in(memory_));
  }

 private:
  Convolution tested_;
  std::vector<std::byte> memory_;
};

class AmxConvolution : public EachTiles {
 protected:
  void check(const ExactCase& c) {
    SCOPED_TRACE(::testing::Message() << c.height << " x " << c.width);
    const Team team(c.threads);
    ExactConvolution<TilesUnderTest> problem(c, kBlock, GetParam().kernels());
    problem.check_all();
  }
};

TEST_P(AmxConvolution, CommonCases) {
  for (const ExactCase& c : common_cases()) check(c);
  check({7, 18, 1, 1, {2, 0}, {2, 0}, true, false, 0.4, 1, 1});
}

/// 16 pixels are a tile forward, 32 one on the way to gradients of weights.
TEST_P(AmxConvolution, WidthsAroundWholeTiles) {
  for (const int width : {15, 16, 17, 31, 32, 33}) {
    check({3, width, 1, 1, {1, 1}, {1, 1}, false, false, 0.8, 1, 1});
    check({5, width + 2, 1, 1, {0, 0}, {0, 0}, true, true, 0.8, 1, 1});
  }
}

TEST_P(AmxConvolution, BlocksWithoutAPartner) {
  check({6, 6, 3, 5, {1, 1}, {1, 1}, false, true, 0.5, 2, 1});
  check({6, 6, 5, 3, {1, 1}, {1, 1}, true, true, 0.5, 2, 1});
}

/// The factors of one row are so many that a strip has few of them.
TEST_P(AmxConvolution, StripsOfFewRows) {
  check({9, 260, 4, 1, {1, 1}, {1, 1}, true, true, 0.3, 1, 1});
  check({5, 290, 1, 12, {1, 1}, {1, 1}, false, true, 0.1, 1, 2});
}

/// Numbers of all bits: off the sums in double by what rounding the factors makes.
TEST_P(AmxConvolution, RoundsFactorsToTheNearest) {
  constexpr int kHeight = 9, kWidth = 20, kIns = 48, kOuts = 32;
  const compute::SampleLayout src{{kHeight, kWidth, kIns}, kBlock},
      dst{{kHeight, kWidth, kOuts}, kBlock};
  const ExactShape shape{src, dst, dst, {1, 1}, {1, 1}, false, false};
  TilesUnderTest tested(shape, 1, GetParam().kernels());
  const auto map = numbers(src.size(), 1, 1), weights = numbers(9 * kIns * kOuts, 1, 2);
  std::vector<float> made(dst.size());
  tested.forward(1, map.data(), weights.data(), nullptr, made.data(), nullptr);
  double off = 0, all = 0;
  const auto at = [](const compute::SampleLayout& l, int y, int x, int c) {
    return l.position(static_cast<std::size_t>((y * l.shape.width + x) * l.shape.channels + c));
  };
  for (int i = 0; i < kHeight * kWidth; ++i) {
    for (int out = 0; out < kOuts; ++out) {
      double sum = 0;
      for (int tap = 0; tap < 9; ++tap) {
        const int y = i / kWidth + tap / 3 - 1, x = i % kWidth + tap % 3 - 1;
        if (y < 0 || y >= kHeight || x < 0 || x >= kWidth) continue;
        for (int in = 0; in < kIns; ++in) {
          const int weight = (((out / 16 * 3 + in / 16) * 9 + tap) * 16 + in % 16) * 16 + out % 16;
          sum += double{map[at(src, y, x, in)]} * weights[static_cast<std::size_t>(weight)];
        }
      }
      const double error = made[at(dst, i / kWidth, i % kWidth, out)] - sum;
      off += error * error;
      all += sum * sum;
    }
  }
  // A factor is off by 2^-9 at most and by 2^-9 / sqrt(3) as the root of a mean square, if evenly
  // spread over the last place; two of them, so by some 0.0016 x sqrt(2) x (3/4, over fractions).
  EXPECT_LE(std::sqrt(off / all), 2.5e-3);
  EXPECT_GE(std::sqrt(off / all), 5e-4) << "factors were not rounded";
}

/// NaN must be seen.
TEST_P(AmxConvolution, NaNStaysInSight) {
  const compute::SampleLayout src{{4, 4, 16}, kBlock}, wide{{2, 2, 16}, kBlock};
  TilesUnderTest tested({src, wide, wide, {0, 0}, {0, 0}, false, true}, 1, GetParam().kernels());
  std::vector<float> map(src.size(), 1), weights(9 * 256, 1), made(wide.size());
  map[0] = std::nanf("");
  tested.forward(1, map.data(), weights.data(), nullptr, made.data(), nullptr);
  EXPECT_TRUE(std::isnan(made[0]));
  EXPECT_EQ(made[3 * 16], 144);
}

/// Images are cut into parts where threads are many.
TEST_P(AmxConvolution, BitsOfPassesDependOnNoNumberOfThreads) {
  const compute::SampleLayout src{{11, 21, 32}, kBlock}, wide{{9, 19, 48}, kBlock},
      dst{{4, 9, 48}, kBlock};
  const ExactShape shape{src, wide, dst, {0, 0}, {0, 0}, true, true};
  constexpr int kImages = 3;
  const auto map = numbers(kImages * src.size(), 0.7f, 1), weights = numbers(9 * 32 * 48, 1, 2),
             diff = numbers(kImages * dst.size(), 1, 3);
  std::vector<std::vector<float>> forward, backward;
  for (const int threads : {1, 2, 7}) {
    const Team team(threads);
    TilesUnderTest tested(shape, threads, GetParam().kernels());
    std::vector<std::uint8_t> winners(kImages * dst.size());
    auto& made = forward.emplace_back(winners.size());
    tested.forward(kImages, map.data(), weights.data(), nullptr, made.data(), winners.data());
    auto& back = backward.emplace_back(map.size());
    tested.backward_data(kImages, {diff.data(), made.data(), winners.data()}, weights.data(),
                         back.data(), false);
    EXPECT_EQ(forward.back(), forward.front());
    EXPECT_EQ(backward.back(), backward.front());
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, AmxConvolution, all_tiles(), name_of_tiles);

}  // namespace
}  // namespace cputrain::cpu::amx::amx_convolution_test
