// Every layer's gradients in double against finite differences of the loss.
//
// A small network around the layer turns its output into a loss. Inputs are pixels, so the gradient
// of a layer's input is tested through the weights of a convolution before it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/reference/reference_backend.h"
#include "core/random/random.h"
#include "model/rewrite.h"
#include "tests/backends/trial.h"
#include "tests/support/own_program.h"
#include "weights/load.h"

namespace cputrain::reference {
namespace {

constexpr int kImages = 3;
constexpr Shape kImage{7, 6, 3};

/// Samples and labels that are functions of nothing: the same in every run.
class Samples {
 public:
  explicit Samples(int classes) {
    for (std::uint32_t n = 0; n < kImages; ++n) {
      const RandomStream stream(1, Purpose::pixels, n);
      std::vector<std::uint8_t> image(kImage.size());
      for (std::size_t i = 0; i < image.size(); ++i) {
        image[i] = static_cast<std::uint8_t>(stream.at(static_cast<std::uint32_t>(i))[0]);
      }
      pixels_.push_back(std::move(image));
      labels_.push_back(static_cast<std::int32_t>(n) % classes);
      samples_.push_back(n);
    }
    for (const auto& image : pixels_) pointers_.push_back(image.data());
  }
  compute::MicroBatch batch() const { return {pointers_, labels_, samples_}; }

 private:
  std::vector<std::vector<std::uint8_t>> pixels_;
  std::vector<const std::uint8_t*> pointers_;
  std::vector<std::int32_t> labels_;
  std::vector<std::uint32_t> samples_;
};

/// Compares every weight's gradient with (loss(w + h) - loss(w - h)) / 2h. The loss is piecewise
/// smooth (ReLU, max pool): where two step sizes disagree a kink lies within reach, and the entry
/// is not compared; few may be.
void check_gradients(const model::Graph& graph, int classes) {
  const auto backend = make_reference_backend(DType::f64);
  const testing::OwnProgram own(*backend, graph, {kImages});
  compute::Program& program = own.program();
  weights::initialise_weights(graph, program, 3, own.arenas().weights);
  const auto weights = own.arenas().weights.as<double>();
  const RandomStream noise(5, Purpose::noise);
  for (std::size_t i = 0; i < weights.size(); ++i) {  // biases too are away from zero
    weights[i] += 0.1 * (unit_float(noise.at(static_cast<std::uint32_t>(i))[0]) - 0.5);
  }
  const Samples samples(classes);
  const compute::Pass pass{compute::Phase::train, 9, 2};
  const auto loss = [&] {
    program.forward(samples.batch(), pass);
    return program.tally().wait().loss;
  };
  loss();
  program.backward({});
  const auto gradients = own.arenas().gradients.as<double>();

  int compared = 0, kinks = 0;
  double largest = 0;
  for (const double g : gradients) largest = std::max(largest, std::abs(g));
  ASSERT_GT(largest, 0);
  for (const compute::Parameter& parameter : program.layout().parameters) {
    if (!parameter.learnt) continue;
    for (std::size_t i = parameter.range.begin; i < parameter.range.end; ++i) {
      const auto slope = [&](double h) {
        const double kept = weights[i];
        weights[i] = kept + h;
        const double above = loss();
        weights[i] = kept - h;
        const double below = loss();
        weights[i] = kept;
        return (above - below) / (2 * h);
      };
      const double fine = slope(1e-5), coarse = slope(2e-5);
      if (std::abs(fine - coarse) > 1e-6 * largest) {
        ++kinks;
        continue;
      }
      ++compared;
      EXPECT_NEAR(gradients[i], fine, 1e-6 * std::max(largest, 1.0)) << parameter.name << " " << i;
    }
  }
  EXPECT_GT(compared, 20 * kinks) << kinks << " entries near a kink";
}

/// Convolution, then the layer, then a classifier.
void check_layer(const model::Layer& layer, const model::Input& input = {}) {
  SCOPED_TRACE(type_name(layer));
  model::Graph graph(kImage, input);
  graph.add(model::Convolution{4, 2});
  graph.add(layer);
  graph.add(model::Dense{3});
  graph.add(model::SoftmaxCrossEntropy{});
  check_gradients(graph, 3);
}
template <class... Layers>
void check_each(const Layers&... layers) {
  (check_layer(layers), ...);
}

TEST(NumericGradient, LayersThatReadOne) {
  using namespace model;
  check_each(
      Convolution{5, 3}, Convolution{5, 3, 2, Padding::same, false}, Convolution{5, 1, 2},
      Convolution{.filters = 4, .kernel = 3, .stride = 2, .padding = Padding::half, .groups = 4},
      Convolution{.filters = 6, .kernel = 2, .bias = false, .groups = 2}, MaxPool{},
      MaxPool{3, 2, Padding::same}, AveragePool{}, AveragePool{3, 2, Padding::same},
      GlobalAveragePool{}, Dense{6}, Dense{6, false}, Relu{}, Relu6{}, LeakyRelu{0.2f}, Silu{},
      Dropout{0.4f}, ZeroPad{1, 0, 2, 3}, BatchNorm{}, LayerNorm{}, LayerNorm{1e-3f, true, false},
      LayerNorm{1e-3f, false, true}, LayerNorm{1e-3f, false, false}, Flatten{});
}

/// Most numbers lie beyond 6.
TEST(NumericGradient, Relu6OfLargeNumbers) { check_layer(model::Relu6{}, {0.5f, 0}); }

TEST(NumericGradient, SigmoidCrossEntropy) {
  check_gradients(testing::graph_of(kImage, model::Convolution{4, 2}, model::Dense{1},
                                    model::SigmoidCrossEntropy{}),
                  2);
}

TEST(NumericGradient, SmoothedTargets) {
  check_gradients(testing::graph_of(kImage, model::Convolution{4, 2}, model::Dense{1},
                                    model::SigmoidCrossEntropy{0.2f}),
                  2);
  check_gradients(testing::graph_of(kImage, model::Convolution{4, 2}, model::Dense{3},
                                    model::SoftmaxCrossEntropy{0.2f}),
                  3);
}

/// A map, what a convolution makes of it, and the map once more.
void check_join(const model::Layer& join, const model::Convolution& convolution) {
  model::Graph graph(kImage);
  const int trunk = graph.add(model::Convolution{4, 2});
  const int branch = graph.add(convolution);
  graph.add(join, "", {trunk, branch, trunk});
  testing::add_layers(graph, model::Dense{3}, model::SoftmaxCrossEntropy{});
  check_gradients(graph, 3);
}

TEST(NumericGradient, Add) { check_join(model::Add{}, {4, 3, 1, model::Padding::same}); }
TEST(NumericGradient, Concat) { check_join(model::Concat{}, {3, 3, 1, model::Padding::half}); }

TEST(NumericGradient, FrozenLayersPassGradientsOn) {
  model::Graph graph(kImage);
  graph.add(model::Convolution{4, 2});
  graph.add(model::BatchNorm{}, "frozen_norm");
  graph.add(model::Convolution{4, 2}, "frozen");
  graph.add(model::Dense{3});
  graph.add(model::SoftmaxCrossEntropy{});
  check_gradients(model::with_frozen(graph, std::vector<std::string>{"frozen_norm", "frozen"}), 3);
}

TEST(NumericGradient, StopsBelowTheFirstLayerThatLearns) {
  check_gradients(testing::graph_of(kImage, model::MaxPool{}, model::Relu{}, model::Dense{3},
                                    model::SoftmaxCrossEntropy{}),
                  3);
}

}  // namespace
}  // namespace cputrain::reference
