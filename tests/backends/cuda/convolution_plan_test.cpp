#include "backends/cuda/kernels/convolution_plan.h"

#include <map>

#include "backends/cuda/kernels/convolution_geometry.h"
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

TEST(GemmPlan, TilesCoverTheResultAndSlicesAreLongAndFew) {
  for (const std::size_t rows : {1, 8, 32, 33, 64, 65, 128, 130, 1000, 100000}) {
    for (const std::size_t columns : {8, 32, 40, 64, 136, 1152, 25088}) {
      for (const std::size_t depth : {8, 72, 256, 2304, 25088}) {
        for (const int multiprocessors : {1, 7, 108, 132}) {
          for (const int parts : {1, 4}) {
            const GemmPlan plan = plan_gemm({rows, columns, depth, parts}, 4, multiprocessors);
            const auto [height, width] = tile_extent(plan.tile);
            const auto covered = [](int tiles, int tile) {
              return static_cast<std::size_t>(tiles) * static_cast<std::size_t>(tile);
            };
            EXPECT_GE(covered(plan.row_tiles, height), rows);
            EXPECT_LT(covered(plan.row_tiles - 1, height), rows);
            EXPECT_GE(covered(plan.column_tiles, width), columns);
            EXPECT_LT(covered(plan.column_tiles - 1, width), columns);
            EXPECT_GE(plan.slices, 1);
            if (plan.slices == 1) continue;
            EXPECT_GE(static_cast<int>((depth + 31) / 32) / plan.slices, 8);
            EXPECT_LE(plan.slices * plan.row_tiles * plan.column_tiles * parts,
                      2 * multiprocessors);
          }
        }
      }
    }
  }
}

TEST(GemmPlan, ChoosesTilesForTheLayersOfThePapersNetwork) {
  const auto tile = [](std::size_t rows, std::size_t columns, std::size_t depth) {
    return plan_gemm({rows, columns, depth}, 4, 132).tile;
  };
  EXPECT_EQ(tile(32 * 64516, 32, 72), GemmTileSize::tall);     // first convolution, forward
  EXPECT_EQ(tile(32, 72, 32 * 64516), GemmTileSize::wide);     // its weights
  EXPECT_EQ(tile(32 * 15625, 64, 288), GemmTileSize::large);   // second, forward
  EXPECT_EQ(tile(32 * 15876, 32, 576), GemmTileSize::tall);    // its data
  EXPECT_EQ(tile(64, 288, 32 * 15625), GemmTileSize::square);  // its weights
  EXPECT_EQ(tile(128, 1152, 32 * 784), GemmTileSize::large);   // fourth, weights
  EXPECT_EQ(tile(32, 512, 25088), GemmTileSize::wide);         // dense, 32 images
  EXPECT_EQ(tile(256, 512, 25088), GemmTileSize::large);       // dense, 256 images
  EXPECT_EQ(tile(256, 8, 256), GemmTileSize::tall);            // the last one
  EXPECT_EQ(tile(256, 256, 512), GemmTileSize::square);        // too few for large ones
}

TEST(GemmPlan, SlicesFillAboutOneWave) {
  // 1 x 4 wide tiles, 784 steps: 2 * 132 / 4 slices.
  EXPECT_EQ(plan_gemm({32, 512, 25088}, 4, 132).slices, 66);
  // 2 x 8 large tiles.
  EXPECT_EQ(plan_gemm({256, 512, 25088}, 4, 132).slices, 16);
  // 36 steps: no more than 4 slices of at least 8.
  EXPECT_EQ(plan_gemm({64, 64, 1152}, 4, 132).slices, 4);
  // 16-bit numbers: half as many steps.
  EXPECT_EQ(plan_gemm({64, 64, 1152}, 2, 132).slices, 2);
  // Tiles enough.
  EXPECT_EQ(plan_gemm({32 * 15625, 64, 288}, 4, 132).slices, 1);
}

TEST(ConvolutionPlan, HoldsTheSlicesOfTheLargestResult) {
  // 256 images of 25088 -> 512: forward 16 slices of 256 x 512 numbers; the weights' gradient has
  // 8 steps and one slice, that of data 16 steps and 2 x 392 tiles.
  const WindowShape dense{256, {1, 1, 25088}, {1, 1, 512}, 1, 1, 0, 0};
  EXPECT_EQ(plan_convolution(dense, 132).workspace, 16u * 256 * 512 * sizeof(float));
  // The bias' gradient alone: 16 * 18 * 19 rows are 21 parts of 256.
  const WindowShape small{16, {18, 19, 8}, {18, 19, 40}, 1, 1, 0, 0};
  EXPECT_GE(plan_convolution(small, 1).workspace, 21u * 40 * sizeof(float));
  EXPECT_EQ(parts_of_column(16 * 18 * 19), 21);
  EXPECT_EQ(parts_of_column(1), 1);
  EXPECT_EQ(parts_of_column(100000000), 256);
}

TEST(ConvolutionPlan, NoImagesNeedNone) {
  const WindowShape none{0, {5, 5, 8}, {5, 5, 8}, 3, 1, 1, 1};
  EXPECT_LE(plan_convolution(none, 132).workspace, 8 * sizeof(float));
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
        for (int phase = 0; phase < stride; ++phase) {
          const PositionClass c = PositionClass::of(phase, positions, pad, size, stride);
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

TEST(Digits, CountAsDivisionsDo) {
  for (const int by : {1, 4, 8, 32, 100}) {
    Digits digits = Digits::of(5, 8, 3);
    for (int number = 5; number < 1000; number += by) {
      EXPECT_EQ((digits.high * 3 + digits.middle) * 8 + digits.low, number);
      EXPECT_LT(digits.low, 8);
      EXPECT_LT(digits.middle, 3);
      digits.advance(by, 8, 3);
    }
  }
}

}  // namespace
}  // namespace cputrain::cuda
