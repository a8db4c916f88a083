#include "weights/torch_arrays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace cputrain::weights {
namespace {

using namespace model;

/// Values 0, 1, 2, ... in the canonical layout, so that a value tells where it was.
ExportedModel counting(const Graph& graph) {
  return {"m", {"a", "b"}, ExportedImages{}, graph, [graph](const std::string& parameter) {
            for (const auto& node : graph.nodes()) {
              for (const auto& spec : node.parameters) {
                if (spec.name != parameter) continue;
                std::vector<float> values(spec.size());
                std::iota(values.begin(), values.end(), 0.0f);
                return values;
              }
            }
            throw std::out_of_range(parameter);
          }};
}

const safetensors::OutTensor& find(const std::vector<safetensors::OutTensor>& tensors,
                                   const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &safetensors::OutTensor::name);
  if (found == tensors.end()) throw std::out_of_range(name);
  return *found;
}

using Extents = std::vector<std::size_t>;

TEST(TorchLayout, TurnsKernelsAndRowsOfAFlattenedMap) {
  Graph graph({3, 4, 3});
  graph.add(Convolution{2, 2}, "conv");  // -> 2x3x2
  graph.add(Relu{});
  graph.add(Flatten{});
  graph.add(Dropout{0.5f});
  graph.add(Dense{5}, "first");
  graph.add(Dense{1}, "second");
  graph.add(SigmoidCrossEntropy{});
  const ExportedModel model = counting(graph);
  const auto tensors = torch_tensors(model);
  EXPECT_EQ(tensors.size(), 6u);

  const auto& kernel = find(tensors, "conv.weight");
  EXPECT_EQ(kernel.extents, (Extents{2, 3, 2, 2}));
  const auto oihw = kernel.values();
  for (std::size_t o = 0; o < 2; ++o) {
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t y = 0; y < 2; ++y) {
        for (std::size_t x = 0; x < 2; ++x) {
          EXPECT_EQ(oihw[((o * 3 + i) * 2 + y) * 2 + x],
                    static_cast<float>(((y * 2 + x) * 3 + i) * 2 + o));
        }
      }
    }
  }
  const auto& first = find(tensors, "first.weight");
  EXPECT_EQ(first.extents, (Extents{5, 12}));
  const auto rows = first.values();
  for (std::size_t o = 0; o < 5; ++o) {
    for (std::size_t c = 0; c < 2; ++c) {
      for (std::size_t y = 0; y < 2; ++y) {
        for (std::size_t x = 0; x < 3; ++x) {
          const std::size_t chw = (c * 2 + y) * 3 + x, hwc = (y * 3 + x) * 2 + c;
          EXPECT_EQ(rows[o * 12 + chw], static_cast<float>(hwc * 5 + o));
        }
      }
    }
  }
  // The second one reads numbers without a place: transposed, in the same order.
  EXPECT_EQ(find(tensors, "second.weight").values(), (std::vector<float>{0, 1, 2, 3, 4}));
  EXPECT_EQ(find(tensors, "second.weight").extents, (Extents{1, 5}));
  EXPECT_EQ(find(tensors, "first.bias").values(), (std::vector<float>{0, 1, 2, 3, 4}));
}

TEST(TorchLayout, NamesNormsAsAStateDict) {
  Graph graph({2, 2, 3});
  graph.add(BatchNorm{}, "maps");
  graph.add(Flatten{});
  graph.add(BatchNorm{}, "vector");  // its channels are the flattened map
  graph.add(LayerNorm{}, "layer");
  graph.add(Dense{2}, "dense");
  graph.add(SoftmaxCrossEntropy{});
  const ExportedModel model = counting(graph);
  const auto tensors = torch_tensors(model);
  for (const char* part : {"weight", "bias", "running_mean", "running_var"}) {
    EXPECT_EQ(find(tensors, std::string("maps.") + part).values(), (std::vector<float>{0, 1, 2}));
    EXPECT_EQ(find(tensors, std::string("vector.") + part).values(),
              (std::vector<float>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
  }
  for (const char* part : {"layer.weight", "layer.bias"}) {
    EXPECT_EQ(find(tensors, part).values(), find(tensors, "vector.bias").values());
  }
  EXPECT_EQ(find(tensors, "dense.weight").values()[1], 3 * 2.0f);  // row (0, 1, 0) of ours
}

/// Flattened maps one behind the other: each keeps an order of its own.
TEST(TorchLayout, OfVectorsThatAreJoined) {
  Graph graph({1, 2, 3});
  const int map = graph.add(Relu6{});
  const int flat = graph.add(Flatten{});
  graph.add(GlobalAveragePool{}, "means", {map});
  graph.add(Concat{}, "both", {flat, flat + 1, flat});
  graph.add(Silu{});
  graph.add(Dense{1}, "dense");
  graph.add(SigmoidCrossEntropy{});
  const ExportedModel model = counting(graph);
  const auto tensors = torch_tensors(model);
  EXPECT_EQ(find(tensors, "dense.weight").values(),
            (std::vector<float>{0, 3, 1, 4, 2, 5, 6, 7, 8, 9, 12, 10, 13, 11, 14}));
}

TEST(TorchLayout, OfGroupsHasTheChannelsOfOne) {
  Graph graph({2, 2, 3});
  graph.add(Convolution{.filters = 6, .kernel = 2, .bias = false, .groups = 3}, "conv");
  graph.add(Flatten{});
  graph.add(Dense{1}, "dense");
  graph.add(SigmoidCrossEntropy{});
  const ExportedModel model = counting(graph);
  const auto tensors = torch_tensors(model);
  const auto& kernel = find(tensors, "conv.weight");
  EXPECT_EQ(kernel.extents, (Extents{6, 1, 2, 2}));
  const auto values = kernel.values();
  for (std::size_t o = 0; o < 6; ++o) {
    for (std::size_t tap = 0; tap < 4; ++tap) {
      EXPECT_EQ(values[o * 4 + tap], static_cast<float>(tap * 6 + o));
    }
  }
}

/// PyTorch deals other channels to the groups than we do.
TEST(TorchLayout, RefusesGroupsOfAFlattenedMap) {
  Graph graph({2, 2, 3});
  graph.add(Flatten{});
  graph.add(Convolution{.filters = 3, .kernel = 1, .groups = 3}, "conv");
  graph.add(Dense{1}, "dense");
  graph.add(SigmoidCrossEntropy{});
  const ExportedModel model = counting(graph);
  EXPECT_THROW(torch_tensors(model), Error);
}

}  // namespace
}  // namespace cputrain::weights
