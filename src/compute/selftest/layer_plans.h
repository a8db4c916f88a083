#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/selftest/cases.h"
#include "compute/selftest_case.h"

namespace cputrain::selftest {

/// The output with the number of images that were predicted rightly.
inline constexpr const char* kPredictions = "correct predictions";

/// A training step of the case: loss, correct predictions, probabilities and the gradient of every
/// parameter. Arenas of gradients are full of something else before the first micro-batch
/// overwrites them. All is borrowed; `reference` computes in double.
compute::CasePlan plan_of(const LayerCase&, std::uint64_t seed, double limit,
                          compute::Backend& tested, compute::Backend& reference);

/// What `reference` computes of it.
compute::RunOutputs expected_of(const LayerCase&, std::uint64_t seed, compute::Backend& reference);

/// Why the backend compiles no such network: a layer that it lacks. Empty: it does. What else goes
/// wrong is an Error.
std::string refusal_of(const LayerCase&, compute::Backend&);

// What drives a program through the contracts alone, so that the same case runs on every backend.

/// Images and labels made from a seed.
struct Samples {
  std::vector<std::vector<std::uint8_t>> images;
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> samples;
  std::vector<compute::MixedLabel> mixed{};  ///< for training; one per image, or none
};
Samples make_images(int count, Shape image, int classes, std::uint64_t seed = 1);

struct Outcome {
  compute::Tally tally;
  std::vector<float> probabilities;  ///< all images', in order
  /// Canonical, by parameter; for parameters that are not learnt their values after the step.
  std::vector<std::vector<double>> gradients;
};

/// Canonical values of parameter `index` of a node.
using WeightSource = std::function<std::vector<double>(const model::Graph::Node&, std::size_t)>;
/// Keras' initial values, but vectors are off them by small numbers: zeros and ones hide mistakes.
std::vector<double> trial_weights(const model::Graph::Node& node, std::size_t index);

/// A compiled graph with its arenas and reproducible weights, biases included.
class Trial {
 public:
  Trial(compute::Backend&, const model::Graph&, std::vector<int> sizes,
        compute::Phase phase = compute::Phase::train, comm::Communicator* synchronise = nullptr,
        comm::Communicator* sharing = nullptr, const WeightSource& = trial_weights);

  /// One step: each piece forward and backward, the first overwriting. `pieces` are numbers of
  /// images, one after another. `batch`: images of all ranks where there are others.
  Outcome train(const Samples&, const std::vector<int>& pieces, std::uint64_t step = 0,
                std::optional<int> batch = std::nullopt);
  Outcome evaluate(const Samples&, const std::vector<int>& pieces);

  compute::Program& program() { return *program_; }
  /// In the backend's memory.
  Array weights() const { return weights_.array(); }
  Array gradients() const { return gradients_.array(); }

 private:
  Outcome run(const Samples&, const std::vector<int>& pieces, const compute::Pass&, int batch);
  compute::OwnedArray weights_, gradients_;
  std::unique_ptr<compute::Program> program_;
};

}  // namespace cputrain::selftest
