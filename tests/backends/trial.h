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
struct Pictures {
  std::vector<std::vector<std::uint8_t>> images;
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> samples;
};
Pictures make_pictures(int count, Shape image, int classes, std::uint64_t seed = 1);

struct Outcome {
  Tally tally;
  std::vector<float> probabilities;  ///< of all images, in order
  /// Canonical, by parameter; of parameters that are not learnt their values after the step.
  std::vector<std::vector<double>> gradients;
};

/// A compiled graph with its arenas and reproducible weights, biases included.
class Trial {
 public:
  Trial(Backend&, const Graph&, std::vector<int> sizes, Phase phase = Phase::train,
        Communicator* synchronise = nullptr, Communicator* sharing = nullptr);

  /// One step: each piece forward and backward, the first overwriting. `pieces` are numbers of
  /// images, one after another.
  /// `batch`: images of all ranks where there are others.
  Outcome train(const Pictures&, const std::vector<int>& pieces, std::uint64_t step = 0,
                std::optional<int> batch = std::nullopt);
  Outcome evaluate(const Pictures&, const std::vector<int>& pieces);

  Program& program() { return *program_; }
  Array weights() { return weights_.array(program_->layout().dtype); }
  Array gradients() { return gradients_.array(program_->layout().dtype); }

 private:
  /// A cache-line aligned arena.
  class Arena {
   public:
    void resize(std::size_t elements, DType);
    Array array(DType dtype) { return {data(), elements_, dtype}; }

   private:
    void* data();
    std::size_t elements_ = 0;
    std::vector<std::byte> bytes_;
  };

  Outcome run(const Pictures&, const std::vector<int>& pieces, const Pass&, int batch);
  std::unique_ptr<Program> program_;
  Arena weights_, gradients_;
};

/// |a - b| / |b|, Euclidean; 0 where both are 0.
double relative_distance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace cputrain::testing
