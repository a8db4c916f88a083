#include "backends/cuda/compile.h"

#include <gtest/gtest.h>

#include <limits>

#include "backends/cuda/kernels/gemm_plan.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

constexpr Shape kPoint{1, 1, 3};
constexpr int kMost = static_cast<int>(kMostPositions);

/// Nothing is allocated before a program's first pass.
OpList ops_of(int images) {
  model::Graph graph(kPoint);
  graph.add(model::Dense{.units = 1}, "last");
  graph.add(model::SigmoidCrossEntropy{});
  compute::MemoryPlan memory;
  return make_ops(graph, {.memory = memory,
                          .sizes = {&images, 1},
                          .training = true,
                          .multiprocessors = 132,
                          .most_ops = static_cast<int>(graph.nodes().size())});
}

TEST(Positions, MayBeAsManyAsKernelsCount) {
  EXPECT_TRUE(ops_of(kMost).loss);
  try {
    ops_of(kMost + 1);
    FAIL() << "compiled";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    EXPECT_NE(std::string(e.what()).find("31 bits"), std::string::npos) << e.what();
  }
}

/// Neither the last row of the last tile nor the last thread of the last block is beyond an int.
TEST(Positions, LeaveRoomForTheLastTile) {
  constexpr auto kLargestInt = static_cast<std::size_t>(std::numeric_limits<int>::max());
  for (const GemmTileSize size :
       {GemmTileSize::tall, GemmTileSize::wide, GemmTileSize::square, GemmTileSize::large}) {
    const auto rows = static_cast<std::size_t>(tile_extent(size).rows);
    EXPECT_LE(pieces(kMostPositions, rows) * rows, kLargestInt);
  }
  EXPECT_LE(pieces(kMostPositions, 256) * 256, kLargestInt);
}

}  // namespace
}  // namespace cputrain::cuda
