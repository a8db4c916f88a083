#pragma once

#include <memory>
#include <vector>

#include "compute/backend.h"

namespace cputrain {

/// A program with arenas of its own: for tests without a communicator.
class OwnProgram {
 public:
  OwnProgram(Backend& backend, const Graph& graph, std::vector<int> sizes)
      : memory_(backend.memory()) {
    program_ = backend.compile(graph, {Phase::train, std::move(sizes)},
                               [this](const ParameterLayout& layout) { return allocate(layout); });
  }

  Program& program() const { return *program_; }
  const Arenas& arenas() const { return arenas_; }

 private:
  Arenas allocate(const ParameterLayout& layout) {
    weights_ = OwnedArray(memory_, layout.arena_size, layout.dtype);
    gradients_ = OwnedArray(memory_, layout.gradient_size, layout.dtype);
    arenas_ = {weights_.array(), gradients_.array()};
    return arenas_;
  }

  Memory& memory_;
  OwnedArray weights_, gradients_;
  Arenas arenas_;
  std::unique_ptr<Program> program_;
};

}  // namespace cputrain
