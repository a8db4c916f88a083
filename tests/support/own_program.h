#pragma once

#include <memory>
#include <vector>

#include "compute/backend.h"

namespace cputrain::testing {

/// A program with arenas of its own: for tests without a communicator.
class OwnProgram {
 public:
  OwnProgram(compute::Backend& backend, const model::Graph& graph, std::vector<int> sizes)
      : memory_(backend.memory()) {
    program_ = backend.compile(
        graph, {compute::Phase::train, std::move(sizes)},
        [this](const compute::ParameterLayout& layout) { return allocate(layout); });
  }

  compute::Program& program() const { return *program_; }
  const compute::Arenas& arenas() const { return arenas_; }

 private:
  compute::Arenas allocate(const compute::ParameterLayout& layout) {
    weights_ = compute::OwnedArray(memory_, layout.arena_size, layout.dtype);
    gradients_ = compute::OwnedArray(memory_, layout.gradient_size, layout.dtype);
    arenas_ = {weights_.array(), gradients_.array()};
    return arenas_;
  }

  compute::Memory& memory_;
  compute::OwnedArray weights_, gradients_;
  compute::Arenas arenas_;
  std::unique_ptr<compute::Program> program_;
};

}  // namespace cputrain::testing
