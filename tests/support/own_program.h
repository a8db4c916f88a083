#pragma once

#include <memory>
#include <vector>

#include "compute/backend.h"
#include "system/pages.h"

namespace cputrain {

/// A program with arenas in memory of its own: for tests without a communicator.
class OwnProgram {
 public:
  OwnProgram(Backend& backend, const Graph& graph, std::vector<int> sizes) {
    program_ = backend.compile(graph, {Phase::train, std::move(sizes)},
                               [this](const ParameterLayout& layout) { return allocate(layout); });
  }

  Program& program() const { return *program_; }
  const Arenas& arenas() const { return arenas_; }

 private:
  Arenas allocate(const ParameterLayout& layout) {
    const std::size_t bytes = layout.arena_size * size_of(layout.dtype);
    for (auto* pages : {&weights_, &gradients_}) *pages = std::make_unique<Pages>(bytes);
    arenas_ = {{weights_->bytes().data(), layout.arena_size, layout.dtype},
               {gradients_->bytes().data(), layout.gradient_size, layout.dtype}};
    return arenas_;
  }

  std::unique_ptr<Pages> weights_, gradients_;
  Arenas arenas_;
  std::unique_ptr<Program> program_;
};

}  // namespace cputrain
