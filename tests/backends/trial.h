#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compute/backend.h"

/// Drives a program through the contracts alone, so that the same test runs on every backend.
namespace cputrain::testing {

/// Images and labels made from a seed.
struct Samples {
  std::vector<std::vector<std::uint8_t>> images;
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> samples;
};
Samples make_images(int count, Shape image, int classes, std::uint64_t seed = 1);

struct Outcome {
  compute::Tally tally;
  std::vector<float> probabilities;  ///< of all images, in order
  /// Canonical, by parameter; of parameters that are not learnt their values after the step.
  std::vector<std::vector<double>> gradients;
};

/// A compiled graph with its arenas and reproducible weights, biases included.
class Trial {
 public:
  Trial(compute::Backend&, const model::Graph&, std::vector<int> sizes,
        compute::Phase phase = compute::Phase::train, comm::Communicator* synchronise = nullptr,
        comm::Communicator* sharing = nullptr);

  /// One step: each piece forward and backward, the first overwriting. `pieces` are numbers of
  /// images, one after another.
  /// `batch`: images of all ranks where there are others.
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

/// These numbers in the backend's memory and type.
compute::OwnedArray array_of(compute::Backend&, std::span<const double> values);

/// |a - b| / |b|, Euclidean; 0 where both are 0.
double relative_distance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace cputrain::testing
