#pragma once

#include <memory>
#include <string>
#include <vector>

#include "training/session/session.h"

namespace cputrain::training {

/// A program for evaluation only, with its weights (zeros at first) in the backend's memory.
struct Inference {
  model::Graph graph;
  compute::OwnedArray memory;
  std::unique_ptr<compute::Program> program;

  const Array& weights() const { return memory.array(); }
};

Inference make_inference(const Session&, const model::Graph&, std::vector<int> sizes);

/// Fills it from a weight file and warns, on standard error, of weights that are NaN or infinite.
/// Rank 0 only. Error(data).
void load_to_use(const std::string& file, const Inference&);

}  // namespace cputrain::training
