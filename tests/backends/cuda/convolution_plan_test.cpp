#include "backends/cuda/kernels/products/convolution_plan.h"

#include <map>

#include "backends/cuda/kernels/divisor.h"
#include "tests/backends/cuda/convolution_trial.h"

namespace cputrain::cuda {
namespace {

TEST(GemmPlan, SlicesCoverEveryStepOnceAndDifferByOne) {
  for (const int slices : {1, 2, 3, 7, 131}) {
    for (const int steps : {0, 1, 2, 8, 17, 100, 1048, 2000000000}) {
      EXPECT_EQ(slice_begin(steps, 0, slices), 0);
      EXPECT_EQ(slice_begin(steps, slices, slices), steps);
      for (int s = 0; s < slices; ++s) {
        const int length = slice_begin(steps, s + 1, slices) - slice_begin(steps, s, slices);
        EXPECT_GE(length, steps / slices);
        EXPECT_LE(length, (steps + slices - 1) / slices);
      }
    }
  }
}

void expect_covers(const GemmExtent& e, Numbers numbers, int multiprocessors) {
  const GemmPlan plan = plan_gemm(e, numbers, multiprocessors);
  const TileShape& tile = plan.tile;
  EXPECT_GE(std::int64_t{plan.row_tiles} * tile.rows, e.rows);
  EXPECT_LT((std::int64_t{plan.row_tiles} - 1) * tile.rows, e.rows);
  EXPECT_GE(std::int64_t{plan.column_tiles} * tile.columns, e.columns);
  EXPECT_LT((std::int64_t{plan.column_tiles} - 1) * tile.columns, e.columns);
  EXPECT_GE(plan.slices, 1);
  EXPECT_TRUE(has_kernels(plan.tile, numbers, e.depth_inside));
  if (plan.slices == 1) return;
  EXPECT_GE(steps_of(e, numbers) / plan.slices, 8);
  EXPECT_LE(plan.slices * plan.row_tiles * plan.column_tiles * e.parts, 2 * multiprocessors);
}

TEST(GemmPlan, TilesCoverTheResultAndSlicesAreLongAndFew) {
  for (const int rows : {1, 8, 32, 33, 64, 65, 128, 130, 256, 1000, 100000}) {
    for (const int columns : {8, 32, 40, 64, 136, 1152, 25088}) {
      for (const int depth : {8, 72, 256, 2304, 25088}) {
        for (const int multiprocessors : {1, 7, 108, 132}) {
          for (const Numbers numbers : kAllNumbers) {
            for (const int parts : {1, 4}) {
              expect_covers({rows, columns, depth, parts}, numbers, multiprocessors);
            }
            expect_covers({rows, columns, depth, 1, false}, numbers, multiprocessors);
          }
        }
      }
    }
  }
}

TEST(GemmPlan, ChoosesTilesForTheLayersOfThePapersNetwork) {
  const auto expect = [](int rows, int columns, int depth, const TileShape& exact,
                         const TileShape& bf16) {
    EXPECT_EQ(plan_gemm({rows, columns, depth}, Numbers::exact, 132).tile, exact);
    EXPECT_EQ(plan_gemm({rows, columns, depth}, Numbers::bf16, 132).tile, bf16);
  };
  expect(32 * 64516, 32, 72, kTile128x32, kTile128x32);    // first convolution, forward
  expect(32, 72, 32 * 64516, kTile32x128, kTile32x128);    // its weights
  expect(32 * 15625, 64, 288, kTile128x64, kTile256x64);   // second, forward
  expect(32 * 15876, 32, 576, kTile128x32, kTile128x32);   // its data
  expect(64, 288, 32 * 15625, kTile64x64, kTile64x64);     // its weights
  expect(32 * 3600, 128, 576, kTile128x64, kTile128x128);  // third, forward
  expect(32 * 3844, 64, 1152, kTile128x64, kTile256x64);   // its data
  expect(128, 1152, 32 * 784, kTile128x64, kTile128x128);  // fourth, weights
  expect(32, 512, 25088, kTile32x128, kTile32x128);        // dense, 32 images
  expect(256, 512, 25088, kTile128x64, kTile128x128);      // dense, 256 images
  expect(256, 8, 256, kTile128x32, kTile128x32);           // the last one
  expect(256, 256, 512, kTile64x64, kTile64x64);           // too few for large ones
  expect(32 * 784, 64, 1152, kTile128x64, kTile128x64);    // too few for 256 rows
}

/// Two tiles of 256 rows at a time, or two of 128.
TEST(GemmPlan, TilesOf256RowsFillTheirWavesAndHaveTheirDepthInside) {
  const auto plan = [](std::int64_t rows, bool inside) {
    return plan_gemm({rows, 64, 1152, 1, inside}, Numbers::tf32, 1);
  };
  for (const std::int64_t rows : {384, 512, 769, 1024, 8 * 512 + 1}) {
    EXPECT_EQ(plan(rows, true).tile, kTile256x64) << rows;
    EXPECT_EQ(plan(rows, true).slices, 1) << rows;
    EXPECT_EQ(plan(rows, false).tile, kTile128x64) << rows;
  }
  for (const std::int64_t rows : {128, 256, 640, 768, 1280}) {
    EXPECT_EQ(plan(rows, true).tile, kTile128x64) << rows;
  }
}

TEST(GemmPlan, SlicesFillAboutOneWave) {
  const auto slices = [](const GemmExtent& e, Numbers numbers) {
    return plan_gemm(e, numbers, 132).slices;
  };
  // 1 x 4 tiles of 32 x 128, 784 steps: 2 * 132 / 4 slices.
  EXPECT_EQ(slices({32, 512, 25088}, Numbers::exact), 66);
  // 2 x 8 tiles of 128 x 64.
  EXPECT_EQ(slices({256, 512, 25088}, Numbers::exact), 16);
  // 36 steps: no more than 4 slices of at least 8.
  EXPECT_EQ(slices({64, 64, 1152}, Numbers::tf32), 4);
  // 16-bit numbers: half as many steps.
  EXPECT_EQ(slices({64, 64, 1152}, Numbers::bf16), 2);
  // Tiles enough.
  EXPECT_EQ(slices({32 * 15625, 64, 288}, Numbers::exact), 1);
}

TEST(ConvolutionPlan, HoldsTheSlicesOfTheLargestResult) {
  // 256 images of 25088 -> 512: forward 16 slices of 256 x 512 numbers. Data has one slice, and
  // transposed weights; these are more.
  const WindowShape dense{256, {1, 1, 25088}, {1, 1, 512}, 1, 1, 0, 0};
  const ConvolutionPlan plan = plan_convolution(dense, Numbers::exact, 132);
  EXPECT_EQ(plan.forward.slices, 16);
  EXPECT_EQ(plan.data.slices, 1);
  EXPECT_EQ(plan.workspace_bytes(dense), 25088u * 512 * sizeof(float));
  // 2 * 132 slices of the first convolution's 32 x 72 weights, and of its bias by four warps.
  const WindowShape first{128, {256, 256, 8}, {254, 254, 32}, 3, 1, 0, 0};
  const ConvolutionPlan sliced = plan_convolution(first, Numbers::exact, 132);
  EXPECT_EQ(sliced.weights.slices, 264);
  EXPECT_EQ(sliced.bias_parts, 4);
  EXPECT_EQ(sliced.workspace_bytes(first), 264u * 32 * (72 + 4) * sizeof(float));
}

/// What sums and their bits depend on is the rule's by every tile that may take its place.
TEST(ConvolutionPlan, OtherTilesHaveTheSlicesOfTheRule) {
  int others = 0;
  for (const ConvolutionCase& c : convolution_cases()) {
    const WindowShape s = c.window();
    for (const Numbers numbers : kAllNumbers) {
      const ConvolutionPlan rule = plan_convolution(s, numbers, 132);
      for (const PlannedProduct& product : kPlannedProducts) {
        const GemmPlan& own = rule.*product.plan;
        const GemmExtent e = product.extent(s);
        EXPECT_TRUE(may_take(s, rule, product, own.tile, numbers, true));
        for (const TileShape& tile : kTiles) {
          if (tile == own.tile || !may_take(s, rule, product, tile, numbers, false)) continue;
          ++others;
          EXPECT_FALSE(may_take(s, rule, product, tile, numbers, true));
          EXPECT_TRUE(has_kernels(tile, numbers, e.depth_inside));
          ConvolutionPlan made = rule;
          made.*product.plan = plan_by_tile(e, tile, own.slices);
          EXPECT_EQ(made.workspace_bytes(s), rule.workspace_bytes(s));
          EXPECT_GE(most_bias_parts(made.weights), rule.bias_parts);
        }
      }
    }
  }
  EXPECT_GT(others, 100);
}

/// So moments and slopes have the bits of the rule's tile alone.
TEST(ConvolutionPlan, NoTwoTilesHaveTheSameRowsAndWarps) {
  const auto sums = [](const TileShape& t) {
    return std::tuple(t.rows, t.warp_rows, t.warp_columns);
  };
  for (const TileShape& a : kTiles) {
    for (const TileShape& b : kTiles) EXPECT_EQ(sums(a) == sums(b), a == b);
  }
}

TEST(ConvolutionPlan, NoImagesNeedTransposedWeightsAlone) {
  const WindowShape none{0, {5, 5, 8}, {5, 5, 8}, 3, 1, 1, 1};
  EXPECT_EQ(plan_convolution(none, Numbers::exact, 132).workspace_bytes(none),
            8u * 72 * sizeof(float));
}

using Pair = std::pair<int, int>;

/// How often each (position, tap) of one side is met: what covers what, from the definition.
std::map<Pair, int> covering(int positions, int windows, int size, int stride, int pad) {
  std::map<Pair, int> windows_of;
  for (int window = 0; window < windows; ++window) {
    for (int tap = 0; tap < size; ++tap) {
      const int position = window * stride - pad + tap;
      if (position >= 0 && position < positions) windows_of[{position, tap}] = window;
    }
  }
  return windows_of;
}

TEST(PositionClass, EveryPositionIsInOneAndItsTapsAreThoseThatCoverIt) {
  for (const int size : {1, 2, 3, 5, 7}) {
    for (const int stride : {1, 2, 3, 4}) {
      for (const int pad : {0, 1, 3}) {
        const int positions = 13, windows = (positions + 2 * pad - size) / stride + 1;
        const auto expected = covering(positions, windows, size, stride, pad);
        std::map<Pair, int> actual;
        std::map<int, int> seen;
        int taps = 0;
        for (int phase = 0; phase < stride; ++phase) {
          const PositionClass c = PositionClasses{positions, pad, size, stride}.of(phase);
          EXPECT_EQ(c.taps_before, taps);
          taps += c.taps;
          for (int n = 0; n < c.count; ++n) {
            const int position = c.first + n * stride;
            ++seen[position];
            for (int i = 0; i < c.taps; ++i) {
              const int window = c.first_window + n - i;
              if (window < 0 || window >= windows) continue;
              EXPECT_TRUE(actual.emplace(Pair{position, phase + i * stride}, window).second);
            }
          }
        }
        EXPECT_EQ(actual, expected);
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(positions));
        for (const auto& [position, times] : seen) EXPECT_EQ(times, 1) << position;
      }
    }
  }
}

/// Weights of a class lie side by side, and classes behind each other, row by row.
TEST(TransposedTaps, LieInTheOrderOfClasses) {
  for (const int size : {1, 2, 3, 5, 7}) {
    for (const int stride : {1, 2, 3, 4, 8}) {
      const TransposedTaps transposed = TransposedTaps::of(size, stride);
      int before = 0;
      for (int phase = 0; phase < stride * stride; ++phase) {
        std::vector<int> taps;
        for (int row = phase / stride; row < size; row += stride) {
          for (int column = phase % stride; column < size; column += stride) {
            taps.push_back(row * size + column);
          }
        }
        for (int i = 0; i < static_cast<int>(taps.size()); ++i) {
          const TransposedTaps::Tap tap = transposed.tap(taps[i]);
          EXPECT_EQ(tap.before, before) << taps[i];
          EXPECT_EQ(tap.taps, static_cast<int>(taps.size())) << taps[i];
          EXPECT_EQ(tap.number, i) << taps[i];
        }
        before += static_cast<int>(taps.size());
      }
      EXPECT_EQ(before, size * size);
    }
  }
}

TEST(Digits, CountAsDivisionsDo) {
  for (const int low : {1, 2, 3, 7, 8, 1000, 65536, 65537, 2147483647}) {
    for (const int middle : {1, 5, 254}) {
      for (const int number : {0, 1, 2, 7, 8, 4095, 65535, 1000000007, 2147483646, 2147483647}) {
        const Digits digits = Digits::of(number, Divisor(low), Divisor(middle));
        EXPECT_EQ(digits.low, number % low) << number << " / " << low;
        EXPECT_EQ(digits.middle, number / low % middle) << number << " / " << low;
        EXPECT_EQ(digits.high, number / low / middle) << number << " / " << low;
      }
    }
  }
}

}  // namespace
}  // namespace cputrain::cuda
