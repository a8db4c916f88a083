#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "backends/reference/reference_backend.h"
#include "tests/backends/backends_under_test.h"
#include "tests/backends/trial.h"

/// Steps one after another of networks with batch norms, on every backend against plain loops in
/// double. A normalization has sums that begin anew in each pass. The layer before may take them
/// while it writes the map, or the normalization takes them itself: a backend may confuse the two,
/// or the sums of values and of gradients, only from the second pass on.
namespace cputrain::testing::norm_steps_test {
namespace {

constexpr Shape kImage{8, 7, 3};
constexpr int kClasses = 3, kSteps = 2;
/// Images of a step, whole or in pieces whose sums are a normalization's own.
const std::vector<int> kWhole{7}, kPieces{4, 3};

model::Convolution convolution(int filters) {
  return {.filters = filters, .kernel = 3, .padding = model::Padding::same};
}

model::Graph ended(model::Graph graph) {
  graph.add(model::Dense{kClasses});
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

using Layers = std::vector<model::Layer>;

/// A normalization behind these layers, each of which reads the one before, and a convolution.
model::Graph maps_behind(const Layers& layers) {
  model::Graph graph(kImage);
  for (const model::Layer& layer : layers) graph.add(layer);
  add_layers(graph, model::BatchNorm{}, convolution(16), model::GlobalAveragePool{});
  return ended(std::move(graph));
}

/// The same of vectors.
model::Graph vectors_behind(const Layers& layers) {
  model::Graph graph(kImage);
  for (const model::Layer& layer : layers) graph.add(layer);
  graph.add(model::BatchNorm{});
  return ended(std::move(graph));
}

/// A normalization of what joins two convolutions.
model::Graph behind_branches(const Layers& join) {
  model::Graph graph(kImage);
  const int trunk = graph.add(convolution(16));
  const int left = graph.add(convolution(16), "", {trunk});
  const int right = graph.add(convolution(16), "", {trunk});
  graph.add(join.front(), "", {left, right});
  add_layers(graph, model::BatchNorm{}, convolution(16), model::GlobalAveragePool{});
  return ended(std::move(graph));
}

/// Several in one network, a convolution before some of them.
model::Graph of_all_kinds(const Layers&) {
  model::Graph graph(kImage);
  graph.add(convolution(16));
  const int first = graph.add(model::BatchNorm{});
  graph.add(model::AveragePool{3, 1, model::Padding::same});
  const int pooled = graph.add(model::BatchNorm{});
  graph.add(model::Concat{}, "", {first, pooled});
  add_layers(graph, model::BatchNorm{}, convolution(16));
  const int means = graph.add(model::GlobalAveragePool{});
  graph.add(model::Concat{}, "", {means, means});
  graph.add(model::BatchNorm{});
  return ended(std::move(graph));
}

struct NormCase {
  std::string name;
  model::Graph (*behind)(const Layers&);
  Layers layers{};
  /// What backends of narrow numbers may be off, in tolerances of theirs.
  double rounding = 2;

  model::Graph graph() const { return behind(layers); }
};

const std::vector<NormCase>& norm_cases() {
  static const std::vector<NormCase> cases{
      {"pixels", maps_behind},
      {"convolution", maps_behind, {convolution(16)}},
      // Many windows get another winner, whose gradient goes elsewhere.
      {"max_pool", maps_behind, {convolution(16), model::MaxPool{}}, 10},
      {"average_pool", maps_behind, {convolution(16), model::AveragePool{}}},
      {"activation", maps_behind, {convolution(16), model::Silu{}}},
      {"zero_pad", maps_behind, {convolution(16), model::ZeroPad{1, 1, 1, 1}}},
      // Averages of images are alike: their deviations are small beside their rounding.
      {"global_average_pool", vectors_behind, {convolution(16), model::GlobalAveragePool{}}, 4},
      {"dense", vectors_behind, {convolution(16), model::Flatten{}, model::Dense{19}}},
      {"layer_norm", maps_behind, {convolution(21), model::LayerNorm{}}},
      {"concat", behind_branches, {model::Concat{}}},
      {"sum", behind_branches, {model::Add{}}},
      {"all_kinds", of_all_kinds}};
  return cases;
}

struct Steps {
  std::vector<Outcome> outcomes;
  std::vector<bool> learnt;  ///< by parameter; the others are moving statistics
};

/// Every step's outcome and that of an evaluation behind it, which takes the moved statistics.
Steps steps_on(compute::Backend& backend, const model::Graph& graph, std::uint64_t seed) {
  Trial trial(backend, graph, {kWhole[0], kPieces[0], kPieces[1]});
  Steps steps;
  for (const compute::Parameter& p : trial.program().layout().parameters) {
    steps.learnt.push_back(p.learnt);
  }
  for (int step = 0; step < kSteps; ++step) {
    const Samples samples =
        make_images(kWhole[0], kImage, kClasses, 10 * seed + static_cast<std::uint64_t>(step));
    const std::vector<int>& pieces = step == 1 ? kWhole : kPieces;
    steps.outcomes.push_back(trial.train(samples, pieces, static_cast<std::uint64_t>(step)));
    steps.outcomes.push_back(trial.evaluate(samples, pieces));
  }
  return steps;
}

const Steps& steps_in_double(const NormCase& c, std::uint64_t seed) {
  static std::map<std::pair<std::string, std::uint64_t>, Steps> made;
  const auto key = std::pair(c.name, seed);
  if (const auto found = made.find(key); found != made.end()) return found->second;
  const auto reference = reference::make_reference_backend(DType::f64);
  return made.emplace(key, steps_on(*reference, c.graph(), seed)).first->second;
}

/// NaN counts as worst.
double worse(double one, double other) { return other <= one ? one : other; }

/// The worst of the loss and, of a training step, of gradients beside the largest gradient (a bias
/// before a batch norm has none but rounding), and of moving statistics, which are larger, beside
/// the largest of those.
double distance(const Outcome& actual, const Outcome& expected, const std::vector<bool>& learnt) {
  double worst = std::abs(actual.tally.loss - expected.tally.loss) / expected.tally.loss;
  if (expected.gradients.empty()) return worst;
  for (const bool gradients : {true, false}) {
    double scale = 0, off = 0;
    for (std::size_t p = 0; p < learnt.size(); ++p) {
      if (learnt[p] != gradients) continue;
      for (std::size_t i = 0; i < expected.gradients[p].size(); ++i) {
        scale = std::max(scale, std::abs(expected.gradients[p][i]));
        off = worse(off, std::abs(actual.gradients[p][i] - expected.gradients[p][i]));
      }
    }
    worst = worse(worst, off / scale);
  }
  return worst;
}

bool is_narrow(const BackendUnderTest& under_test) { return under_test.tolerance > 1e-3; }

using Parameters = std::tuple<BackendUnderTest, NormCase>;
class NormSteps : public ::testing::TestWithParam<Parameters> {};

/// Rounding may give a window of a max pool another winner; images of most seeds go without.
TEST_P(NormSteps, EachHasSumsOfItsOwn) {
  const auto& [under_test, c] = GetParam();
  if (!under_test.runs(c.graph())) return expect_refusal(under_test, c.graph());
  const auto backend = under_test.make();
  double best = HUGE_VAL;
  const double bound = (is_narrow(under_test) ? c.rounding : 10) * under_test.tolerance;
  for (std::uint64_t seed = 1; seed <= 4 && !(best <= bound); ++seed) {
    const Steps actual = steps_on(*backend, c.graph(), seed);
    const Steps& expected = steps_in_double(c, seed);
    double worst = 0;
    for (std::size_t i = 0; i < expected.outcomes.size(); ++i) {
      worst = worse(worst, distance(actual.outcomes[i], expected.outcomes[i], expected.learnt));
    }
    best = std::min(best, worst);
  }
  EXPECT_LE(best, bound);
}

std::string name_of(const ::testing::TestParamInfo<Parameters>& info) {
  return std::get<0>(info.param).name + "_behind_" + std::get<1>(info.param).name;
}
INSTANTIATE_TEST_SUITE_P(AllBackends, NormSteps,
                         ::testing::Combine(::testing::ValuesIn(backends_under_test()),
                                            ::testing::ValuesIn(norm_cases())),
                         name_of);
INSTANTIATE_TEST_SUITE_P(NarrowBackends, NormSteps,
                         ::testing::Combine(::testing::ValuesIn(narrow_backends_under_test()),
                                            ::testing::ValuesIn(norm_cases())),
                         name_of);

}  // namespace
}  // namespace cputrain::testing::norm_steps_test
