#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "backends/cuda/backend.h"
#include "backends/cuda/kernels/products/gemm_plan.h"
#include "backends/cuda/ops/op.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

constexpr Shape kPoint{1, 1, 3};

/// What is wrong with a model of one layer for so many images; empty: nothing.
std::string refusal_of(int images, const Shape& image = kPoint,
                       const model::Layer& layer = model::Dense{.units = 1}) {
  model::Graph graph(image);
  graph.add(layer, "last");
  compute::MemoryPlan memory;
  const compute::CompileOptions options;
  ComputeStream stream;
  DeviceMemory device_memory(0, 1, Numbers::exact, stream);
  try {
    make_ops(graph, Planning{{.memory = memory,
                              .options = options,
                              .sizes = {&images, 1},
                              .most_ops = static_cast<int>(graph.nodes().size())},
                             {{}, 132, stream, device_memory},
                             nullptr});
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  return {};
}

TEST(Positions, MayBeAsManyAsKernelsCount) {
  // An image has 8 floats, twice 16 bytes.
  EXPECT_EQ(refusal_of(kMostChunks / 2), "");
  const std::string refusal = refusal_of(kMostChunks / 2 + 1);
  EXPECT_NE(refusal.find("31 bits"), std::string::npos) << refusal;
}

TEST(Positions, AreNotTooManyOnASide) {
  EXPECT_EQ(refusal_of(1, {kLargestSide, 1, 3}), "");
  for (const Shape& image : {Shape{kLargestSide + 1, 1, 3}, Shape{1, kLargestSide + 1, 3}}) {
    const std::string refusal = refusal_of(1, image);
    EXPECT_NE(refusal.find("a side"), std::string::npos) << refusal;
  }
}

TEST(Positions, LeaveRoomForWindowsThatReachOverTheEnd) {
  // Four images have 2^31 chunks less 2^17; a row of a window's has 2^15.
  constexpr Shape kLarge{kLargestSide, kLargestSide - 1, 3};
  EXPECT_EQ(refusal_of(4, kLarge, model::Convolution{.filters = 1, .kernel = 2}), "");
  const std::string refusal = refusal_of(4, kLarge, model::Convolution{.filters = 1, .kernel = 4});
  EXPECT_NE(refusal.find("reach over"), std::string::npos) << refusal;
}

TEST(Weights, MayBeAsManyAsKernelsCount) {
  constexpr Shape kLarge{1024, 1024, 8};  // 2^21 chunks of weights for each output
  EXPECT_EQ(refusal_of(1, kLarge, model::Dense{.units = 1016}), "");
  const std::string refusal = refusal_of(1, kLarge, model::Dense{.units = 1024});
  EXPECT_NE(refusal.find("weights"), std::string::npos) << refusal;
  // With their padding inputs are more than an int counts.
  EXPECT_NE(refusal_of(1, {kLargestSide, kLargestSide, 3}).find("weights"), std::string::npos);
}

/// Neither the last row of the last tile nor the last thread of the last block is beyond an int.
TEST(Positions, LeaveRoomForTheLastTile) {
  constexpr std::int64_t kLargestInt = std::numeric_limits<int>::max(), kMost = kMostChunks;
  for (const TileShape& tile : kTiles) {
    EXPECT_LE(pieces(kMost, tile.rows) * tile.rows, kLargestInt);
  }
  EXPECT_LE(pieces(kMost, 256) * 256, kLargestInt);
  // A thread of the sums of batch norm goes on by eight times the rows of a block.
  EXPECT_LE(kMost + 8 * 256, kLargestInt);
}

/// Bytes of a program that is nothing but maps, to speak of.
double bytes_of_maps(compute::Backend& backend) {
  model::Graph graph({64, 64, 3});
  for (int i = 0; i < 3; ++i) graph.add(model::Convolution{8, 1, 1, model::Padding::valid});
  graph.add(model::GlobalAveragePool{});
  graph.add(model::Dense{2});
  graph.add(model::SoftmaxCrossEntropy{});
  const compute::CompileOptions options{compute::Phase::evaluate, {4}};
  const auto program = backend.compile(
      graph, options, [](const compute::ParameterLayout&) { return compute::Arenas{}; });
  return static_cast<double>(program->workspace_bytes());
}

TEST(NumberBytes, AreThoseOfMaps) {
  const auto exact = make_device_backend({.numbers = Numbers::exact});
  EXPECT_EQ(exact->facts().number_bytes, 4u);
  for (const Numbers numbers : {Numbers::tf32, Numbers::bf16}) {
    const auto backend = make_device_backend({.numbers = numbers});
    const auto bytes = static_cast<double>(backend->facts().number_bytes);
    EXPECT_NEAR(bytes_of_maps(*backend) / bytes_of_maps(*exact), bytes / 4, 0.01);
  }
}

}  // namespace
}  // namespace cputrain::cuda
