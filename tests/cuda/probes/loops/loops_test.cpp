#include <gtest/gtest.h>

#include "backends/cuda/kernels/products/gemm.h"
#include "cuda/probes/loops/emulated_loops.h"
#include "cuda/probes/loops/matrices.h"
#include "cuda/probes/loops/transposed_operands.h"
#include "emulated/device_fixture.h"

/// Whether the loops whose rates a GPU is asked for compute what they should: descriptors are read
/// by the PTX ISA's words (emulated_wgmma.cpp), tiles are laid out by the kernels' own.
namespace cputrain::cuda::probes {
namespace {

constexpr int kBlocks = 2;

struct Trial {
  const EmulatedLoop& loop;
  bool own_rows;
  int steps;
  Matrix (*numbers)(Numbers, std::size_t lines, std::size_t depth, unsigned seed);
};

std::size_t count(int n) { return static_cast<std::size_t>(n); }

struct Operands {
  Matrix a, b;
};
Operands operands_of(const Trial& t) {
  const EmulatedLoop& loop = t.loop;
  const std::size_t of_step = kStepBytes / stored_bytes(loop.numbers);
  const std::size_t rows = count((t.own_rows ? kBlocks : 1) * loop.rows);
  const std::size_t steps = count(loop.short_columns ? kStepsOfRows : t.steps);
  return {t.numbers(loop.numbers, rows, kStepsOfRows * of_step, 1),
          t.numbers(loop.numbers, count(loop.columns), steps * of_step, 2)};
}

/// The tiles of all blocks.
std::vector<float> tiles_of(const Trial& t, const Operands& of) {
  const emulated::DeviceArray<std::byte> a(of.a.bytes(t.loop.transposed_a), "a");
  const emulated::DeviceArray<std::byte> b(of.b.bytes(t.loop.transposed_b), "b");
  const emulated::DeviceArray<float> tiles(count(kBlocks * t.loop.rows * t.loop.columns), "tiles");
  const OwnedStream stream;
  t.loop.launch(stream.get(), {a.data(), b.data(), kBlocks, t.own_rows, t.steps, tiles.data()});
  stream.synchronize();
  return tiles.values();
}

Matrix cut_off(const Matrix& from, std::size_t depth) {
  Matrix made{from.numbers, from.lines, depth, {}};
  for (std::size_t i = 0; i < from.lines * depth; ++i) {
    made.values.push_back(from.at(i / depth, i % depth));
  }
  return made;
}

/// How many sums of all blocks are wrong.
std::size_t wrong_sums_of(const Trial& t) {
  Operands of = operands_of(t);
  const std::vector<float> got = tiles_of(t, of);
  const std::size_t rows = count(t.loop.rows), columns = count(t.loop.columns);
  if (t.loop.instructions > 0) {
    const std::size_t bytes = count(t.loop.instructions * kStepBytes / kInstructionsOfStep);
    const std::size_t depth = bytes / stored_bytes(t.loop.numbers);
    of = {cut_off(of.a, depth), cut_off(of.b, depth)};
  }
  const double instructions = t.numbers == integers ? 0 : t.steps * kInstructionsOfStep;
  const PlainColumns plain(of.b, columns, count(t.steps), of.a.depth);
  std::size_t wrong = 0;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    wrong += wrong_sums(plain.tile(of.a, t.own_rows ? block * rows : 0, rows),
                        &got[block * rows * columns], instructions);
  }
  return wrong;
}

class Loops : public emulated::OnDevice, public testing::WithParamInterface<Reads> {
 protected:
  Loops() { emulate_wgmma(GetParam()); }
};

TEST_P(Loops, SumIntegersExactly) {
  for (const EmulatedLoop& loop : right_loops()) {
    SCOPED_TRACE(loop.name);
    EXPECT_EQ(wrong_sums_of({loop, !loop.short_columns, 5, integers}), 0u);
  }
}

TEST_P(Loops, SumFractions) {
  for (const EmulatedLoop& loop : right_loops()) {
    SCOPED_TRACE(loop.name);
    EXPECT_EQ(wrong_sums_of({loop, false, 3, fractions}), 0u);
  }
}

TEST_P(Loops, InPartHaveTheSumsOfWhatIsLeft) {
  for (const EmulatedLoop& loop : partial_loops()) {
    SCOPED_TRACE(loop.name);
    EXPECT_EQ(wrong_sums_of({loop, true, 5, integers}), 0u);
  }
}

/// Nothing but faults can be seen of them.
TEST_P(Loops, OfLoadsEnd) {
  for (const EmulatedLoop& loop : loops_of_loads()) {
    SCOPED_TRACE(loop.name);
    const Trial trial{loop, true, 5, integers};
    EXPECT_EQ(tiles_of(trial, operands_of(trial)).size(),
              count(kBlocks * loop.rows * loop.columns));
  }
}

/// Tables of taps have 128 steps; one step is fewer than there are stages.
TEST_P(Loops, HaveAnyLength) {
  const EmulatedLoop loop = right_loops()[2];
  for (const int steps : {1, 2, 131}) {
    EXPECT_EQ(wrong_sums_of({loop, true, steps, integers}), 0u) << loop.name << ", " << steps;
  }
}

TEST_P(Loops, WithABugAreFound) {
  for (const EmulatedLoop& loop : wrong_loops()) {
    if (loop.name == "stages" && GetParam() == Reads::at_once) continue;  // such a device hides it
    SCOPED_TRACE(loop.name);
    std::size_t wrong = 0;
    const auto fault = emulated::message_of([&] {
      wrong = wrong_sums_of({loop, false, 5, integers});
    });
    EXPECT_TRUE(fault || wrong > 0);
    emulated::restart({});
    emulate_wgmma(GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Times, Loops, testing::Values(Reads::at_once, Reads::late),
                         [](const auto& test) {
                           return test.param == Reads::late ? "late" : "at_once";
                         });

/// What the product's tiles have.
TEST(Panels, Of64RowsAreRowsInside) {
  for (int depth = 0; depth < 64; ++depth) {
    for (int chunk = 0; chunk < 8; ++chunk) {
      EXPECT_EQ(Panels<64>::offset(depth, chunk),
                (RowsInside<Bf16Numbers, 64>::offset(depth, chunk)));
    }
  }
}

/// By hand: a tile of 128 x 128 has 4 warps of 64 x 64, which read 128 lines of 128 bytes each.
TEST(Costs, AreThoseOfTiles) {
  const StepCost large = cost_of_step<TileOf<kTile128x128>>(),
                 small = cost_of_step<TileOf<kTile64x64>>();
  EXPECT_EQ(large.products, 4 * 128);
  EXPECT_EQ(large.loads, 4 * 32);
  EXPECT_EQ(large.bytes_loaded, 65536);
  EXPECT_EQ(large.bytes_copied, 32768);
  EXPECT_EQ(small.products, 4 * 32);
  EXPECT_EQ(small.bytes_loaded + small.bytes_copied, 32768 + 16384);
}

}  // namespace
}  // namespace cputrain::cuda::probes
