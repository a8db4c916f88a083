#include <gtest/gtest.h>

#include "core/random/random.h"
#include "model/rewrite.h"
#include "tests/backends/agreement.h"

/// Networks with branches on every backend against plain loops in double: residual blocks of both
/// kinds, and graphs drawn at random. Wherever a map has several readers their gradients must meet,
/// and a backend may share memory among them in ways that only a few graphs give away.
namespace cputrain::testing::branches_test {
namespace {

using namespace agreement;

/// He et al.'s first kind: addition, then ReLU.
model::Graph residual_v1() {
  model::Graph graph(kImage);
  graph.add(same(16));
  for (int block = 0; block < 3; ++block) {
    const int src = graph.add(model::Relu{});
    add_layers(graph, same(16), model::BatchNorm{}, model::Relu{}, same(16));
    const int residual = graph.add(model::BatchNorm{});
    graph.add(model::Add{}, "", {src, residual});
  }
  add_head(graph);
  return graph;
}

/// The second kind, with a projection, identities and a pool as shortcuts.
model::Graph residual_v2() {
  model::Graph graph(kImage);
  int src = graph.add(same(16));
  for (int block = 0; block < 4; ++block) {
    graph.add(model::BatchNorm{}, "", {src});
    const int activated = graph.add(model::Relu{});
    const bool last = block == 3;
    int shortcut = src;
    if (block == 0) shortcut = graph.add(same(32, 1), "", {activated});
    if (last) shortcut = graph.add(model::MaxPool{1, 2}, "", {src});
    graph.add(same(16, 1), "", {activated});
    add_layers(graph, model::BatchNorm{}, model::Relu{}, model::ZeroPad{1, 1, 1, 1});
    const int residual =
        graph.add(model::Convolution{.filters = 32, .kernel = 3, .stride = last ? 2 : 1});
    src = graph.add(model::Add{}, "", {shortcut, residual});
  }
  graph.add(model::BatchNorm{});
  graph.add(model::Relu{});
  add_head(graph);
  return graph;
}

/// Huang et al.'s dense block: each layer adds channels to those that all later ones read.
model::Graph dense_block(int first, int growth) {
  model::Graph graph(kImage);
  int maps = graph.add(same(first));
  for (int layer = 0; layer < 4; ++layer) {
    graph.add(model::BatchNorm{}, "", {maps});
    graph.add(model::Relu{});
    const int grown = graph.add(same(growth));
    maps = graph.add(model::Concat{}, "", {maps, grown});
  }
  graph.add(model::BatchNorm{});
  graph.add(model::Relu6{});
  add_head(graph);
  return graph;
}

/// Szegedy et al.'s: branches of one map, one behind the other.
model::Graph inception() {
  model::Graph graph(kImage);
  const int src = graph.add(same(16));
  const int plain = graph.add(same(5, 1), "", {src});
  graph.add(same(7, 1), "", {src});
  const int wide = graph.add(same(11));
  graph.add(model::MaxPool{3, 1, model::Padding::same}, "", {src});
  const int pooled = graph.add(same(9, 1));
  const int normal = graph.add(model::LayerNorm{}, "", {src});
  graph.add(model::Concat{}, "", {plain, wide, src, pooled, normal, src});
  graph.add(model::Silu{});
  graph.add(same(16));
  add_head(graph);
  return graph;
}

/// Sandler et al.'s: channels are widened, each is convolved, and they are narrowed again.
model::Graph inverted_residual() {
  model::Graph graph(kImage);
  int src = graph.add(same(16));
  for (int block = 0; block < 2; ++block) {
    add_layers(graph, model::Convolution{.filters = 48, .kernel = 1, .bias = false},
               model::BatchNorm{}, model::Relu6{},
               model::Convolution{.filters = 48,
                                  .kernel = 3,
                                  .padding = model::Padding::half,
                                  .bias = false,
                                  .groups = 48},
               model::BatchNorm{}, model::Relu6{},
               model::Convolution{.filters = 16, .kernel = 1, .bias = false});
    const int residual = graph.add(model::BatchNorm{});
    src = graph.add(model::Add{}, "", {src, residual});
  }
  add_head(graph);
  return graph;
}

/// A vector of means beside one of a dense layer, which lie differently in memory.
model::Graph joined_vectors() {
  model::Graph graph(kImage);
  const int map = graph.add(same(16));
  const int means = graph.add(model::GlobalAveragePool{});
  graph.add(model::Dense{5}, "", {map});
  const int made = graph.add(model::Relu{});
  graph.add(model::Concat{}, "", {means, made, means});
  graph.add(model::Dense{kClasses});
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

/// Layers on maps of one shape, each reading any earlier ones; what nobody read is added up at the
/// end.
model::Graph random_graph(std::uint64_t seed) {
  const RandomStream stream(seed, Purpose::noise);
  std::uint32_t next = 0;
  const auto draw = [&](int bound) {
    return static_cast<int>(below(stream.at(next++)[0], static_cast<std::uint32_t>(bound)));
  };
  model::Graph graph(kImage);
  const model::Layer of_one[]{same(16),
                              model::Relu{},
                              model::Dropout{0.3f},
                              model::BatchNorm{},
                              model::AveragePool{3, 1, model::Padding::same},
                              model::Add{},
                              model::Relu6{},
                              model::Silu{}};
  std::vector<int> maps{graph.add(same(16))};
  for (int i = 0; i < 10; ++i) {
    const int src = maps[static_cast<std::size_t>(draw(static_cast<int>(maps.size())))];
    const int other = maps[static_cast<std::size_t>(draw(static_cast<int>(maps.size())))];
    const int kind = draw(11);
    if (kind == 8) {
      graph.add(model::Concat{}, "", {src, other});
      maps.push_back(graph.add(same(16, 1)));
    } else if (kind == 5 || kind > 8) {
      const std::vector<int> parts{src, other, src};
      maps.push_back(graph.add(model::Add{}, "", {parts.begin(), parts.end() - (kind > 8)}));
    } else {
      maps.push_back(graph.add(of_one[kind], "", {src}));
    }
  }
  std::vector<int> unread;
  for (const int map : maps) {
    if (graph.readers(map) == 0) unread.push_back(map);
  }
  if (unread.size() > 1) graph.add(model::Add{}, "", unread);
  add_head(graph);
  return graph;
}

/// Whose operators are those of one thread in another backend of the list.
bool several_threads(const BackendUnderTest& under_test) {
  return under_test.name.ends_with("_threads");
}

class Branches : public ::testing::TestWithParam<BackendUnderTest> {};

TEST_P(Branches, ResidualBlocksOfBothKinds) {
  expect_agreement(GetParam(), residual_v1());
  expect_agreement(GetParam(), residual_v2());
}

TEST_P(Branches, DenseBlocksOfWholeAndOddChannels) {
  expect_agreement(GetParam(), dense_block(16, 16));
  expect_agreement(GetParam(), dense_block(21, 5));
}

TEST_P(Branches, BranchesOneBehindTheOther) {
  expect_agreement(GetParam(), inception());
  expect_agreement(GetParam(), joined_vectors());
}

/// A dense layer reads maps as they are, too, and then has another width than their norm.
TEST_P(Branches, ADenseLayerBehindANorm) {
  for (const bool cut : {false, true}) {
    model::Graph graph(kImage);
    add_layers(graph, same(16), model::BatchNorm{});
    if (cut) graph.add(model::Relu{});
    add_layers(graph, model::Dense{kClasses}, model::SoftmaxCrossEntropy{});
    expect_agreement(GetParam(), graph);
  }
}

TEST_P(Branches, InvertedResiduals) { expect_agreement(GetParam(), inverted_residual()); }

TEST_P(Branches, GraphsDrawnAtRandom) {
  // Who shares memory is decided by the executor for all of them. The emulated device takes long.
  const std::uint64_t graphs = GetParam().emulated || several_threads(GetParam()) ? 12 : 60;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    SCOPED_TRACE("graph of seed " + std::to_string(seed));
    expect_agreement(GetParam(), random_graph(seed));
  }
}

/// A ReLU cuts the gradient of its part of a sum in place, before the producer of the other part
/// has read it, on the way back.
TEST_P(Branches, PartsOfASumKeepTheirOwnGradients) {
  for (const bool norm : {false, true}) {
    model::Graph graph(kImage);
    const int trunk = graph.add(same(16));
    const int earlier = graph.add(model::AveragePool{3, 1, model::Padding::same}, "", {trunk});
    int later = graph.add(same(16), "", {trunk});
    if (norm) {
      graph.add(model::BatchNorm{});
      later = graph.add(model::Add{}, "", {trunk, later + 1});
    }
    later = graph.add(model::Relu{});
    graph.add(model::Add{}, "", {earlier, later});
    add_head(graph);
    expect_agreement(GetParam(), graph);
  }
}

/// The sum's gradient is that of a part and of the part's own part, which is read later on the way
/// back than the ReLU cuts it.
TEST_P(Branches, SumsOfSumsKeepTheirGradients) {
  model::Graph graph(kImage);
  const int trunk = graph.add(same(16));
  const int first = graph.add(model::Add{}, "", {trunk, trunk});
  const int cut = graph.add(model::Relu{}, "", {trunk});
  const int branch = graph.add(same(16), "", {trunk});
  const int sum = graph.add(model::Add{}, "", {branch, first, branch});
  graph.add(model::Add{}, "", {cut, sum});
  add_head(graph);
  expect_agreement(GetParam(), graph);
}

/// Kernels that read images themselves must not overlook what was made of them.
TEST_P(Branches, ImagesAreChangedBeforeTheFirstConvolution) {
  for (const bool relu : {true, false}) {
    model::Graph graph(kImage, {.scale = {1.0f / 64, 1.0f / 32, 0.01f}, .offset = {-2, 0, 1}});
    relu ? graph.add(model::Relu{}) : graph.add(model::Dropout{0.4f});
    add_layers(graph, model::Convolution{.filters = 16, .kernel = 3}, model::MaxPool{},
               model::Relu{});
    add_head(graph);
    expect_agreement(GetParam(), graph);
  }
}

TEST_P(Branches, FrozenLayersPassGradientsOn) {
  const model::Graph graph = residual_v2();
  std::vector<std::string> frozen;
  for (const auto& node : graph.nodes()) {
    if (!node.parameters.empty() && frozen.size() < 7) frozen.push_back(node.name);
  }
  expect_agreement(GetParam(), model::with_frozen(graph, frozen));
  expect_agreement(GetParam(),
                   model::with_frozen(graph, std::vector(frozen.begin() + 1, frozen.end())));
}

TEST_P(Branches, PiecesAddUpWhereNothingDependsOnOtherImages) {
  model::Graph graph(kImage);
  const int trunk = graph.add(same(16));
  graph.add(same(16));
  graph.add(model::Relu{});
  const int branch = graph.add(same(16));
  graph.add(model::Add{}, "", {trunk, branch});
  add_head(graph);
  if (!GetParam().runs(graph)) return expect_refusal(GetParam(), graph);
  const auto backend = GetParam().make();
  const Samples samples = make_images(kImages, kImage, kClasses);
  Trial whole(*backend, graph, {kImages}), pieces(*backend, graph, {1, 3});
  const Outcome expected = whole.train(samples, {kImages});
  const Outcome actual = pieces.train(samples, {1, 3});
  for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
    EXPECT_LE(relative_distance(actual.gradients[p], expected.gradients[p]),
              10 * GetParam().tolerance);
  }
}

/// Whoever looks at the weights between steps must not see statistics of one that is not done.
TEST_P(Branches, StatisticsMoveWhenTheWeightsDo) {
  if (!GetParam().runs(residual_v2())) return expect_refusal(GetParam(), residual_v2());
  const auto backend = GetParam().make();
  Trial trial(*backend, residual_v2(), {kImages});
  compute::Program& program = trial.program();
  const auto bytes = [&] {
    std::vector<std::byte> now(trial.weights().bytes().size());
    backend->memory().read(trial.weights().data, now);
    return now;
  };
  const auto before = bytes();
  const Samples samples = make_images(kImages, kImage, kClasses);
  std::vector<const std::uint8_t*> images;
  for (const auto& image : samples.images) images.push_back(image.data());
  const compute::MicroBatch batch{images, samples.labels, samples.samples};
  program.forward(batch, {compute::Phase::train, 1, 0});
  EXPECT_EQ(bytes(), before);
  program.publish_statistics();
  const auto once = bytes();
  EXPECT_NE(once, before);
  program.publish_statistics();  // nothing new
  program.forward(batch, {compute::Phase::evaluate, 1, 0});
  program.publish_statistics();
  EXPECT_EQ(bytes(), once);
}

INSTANTIATE_TEST_SUITE_P(AllBackends, Branches, ::testing::ValuesIn(backends_under_test()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(NarrowBackends, Branches,
                         ::testing::ValuesIn(narrow_backends_under_test()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cputrain::testing::branches_test
