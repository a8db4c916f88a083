#include <gtest/gtest.h>

#include "model/rewrite.h"
#include "tests/backends/agreement.h"

/// Sums that a convolution or dense layer may make as it stores, on every backend.
namespace cputrain::testing::sums_test {
namespace {

using namespace agreement;

class Sums : public ::testing::TestWithParam<BackendUnderTest> {};

/// A convolution that adds another map as it goes on, in front of a normalization that takes its
/// sums then. The other map may have readers before and behind, be the convolution's own source, or
/// be changed in place; so may the sum.
TEST_P(Sums, BehindConvolutions) {
  struct Wish {
    bool own_source, read_later, changed, sum_changed;
  };
  for (const Wish& wish : {Wish{false, false, false, false}, Wish{true, false, false, false},
                           Wish{false, true, false, false}, Wish{true, true, false, false},
                           Wish{false, false, true, false}, Wish{false, false, false, true},
                           Wish{true, true, true, true}}) {
    model::Graph graph(kImage);
    graph.add(same(16));
    int src = graph.add(model::BatchNorm{});
    int other = wish.own_source ? src : graph.add(same(16), "", {src});
    if (wish.changed) other = graph.add(model::Dropout{0.3f}, "", {other});
    if (wish.own_source) src = other;
    const int residual = graph.add(same(16), "", {src});
    int sum = graph.add(model::Add{}, "", {residual, other});
    if (wish.sum_changed) sum = graph.add(model::Dropout{0.3f});
    graph.add(model::BatchNorm{});
    const int normal = graph.add(same(16));
    graph.add(model::Add{}, "", {wish.read_later ? other : sum, normal});
    add_head(graph);
    expect_agreement(GetParam(), graph);
    if (wish.changed || wish.sum_changed) continue;
    // The shortcut alone learns.
    const std::string name = graph.nodes()[static_cast<std::size_t>(residual)].name;
    expect_agreement(GetParam(), model::with_frozen(graph, std::vector{name}));
  }
}

/// The same of dense layers, and of a convolution that reads zeros around the map that is added.
TEST_P(Sums, BehindDenseLayersAndZeros) {
  model::Graph graph(kImage);
  const int trunk = graph.add(same(16));
  graph.add(model::Relu{}, "", {trunk});
  const int activated = graph.add(model::ZeroPad{1, 1, 1, 1});
  const int padded = graph.add(model::Convolution{.filters = 16, .kernel = 3}, "", {activated});
  graph.add(model::Add{}, "", {trunk, padded});
  const int pooled = graph.add(model::GlobalAveragePool{});
  const int shortcut = graph.add(model::Dense{16}, "", {pooled});
  const int vector = graph.add(model::Dense{16}, "", {pooled});
  const int sum = graph.add(model::Add{}, "", {shortcut, vector});
  const int own = graph.add(model::Dense{16}, "", {sum});
  graph.add(model::Add{}, "", {own, sum});
  add_layers(graph, model::Dense{kClasses}, model::SoftmaxCrossEntropy{});
  expect_agreement(GetParam(), graph);
}

/// Channels fill no chunk; then nobody learns from the other map.
TEST_P(Sums, OfOddChannelsAndFrozenMaps) {
  model::Graph graph(kImage);
  const int frozen = graph.add(same(21));
  const int src = graph.add(same(16), "", {0});
  const int learns = graph.add(same(21), "", {src});
  graph.add(model::Add{}, "", {learns, frozen});
  add_head(graph);
  expect_agreement(GetParam(), graph);
  const std::string name = graph.nodes()[static_cast<std::size_t>(frozen)].name;
  expect_agreement(GetParam(), model::with_frozen(graph, std::vector{name}));
}

TEST_P(Sums, WithTheImage) {
  model::Graph graph(kImage);
  graph.add(same(kImage.channels));
  const int own = graph.add(same(kImage.channels));
  graph.add(model::Add{}, "", {own, 0});
  add_head(graph);
  if (GetParam().name.starts_with("cpu")) {
    expect_refusal(GetParam(), graph);
  } else {
    expect_agreement(GetParam(), graph);
  }
}

INSTANTIATE_TEST_SUITE_P(AllBackends, Sums, ::testing::ValuesIn(backends_under_test()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(NarrowBackends, Sums, ::testing::ValuesIn(narrow_backends_under_test()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cputrain::testing::sums_test
