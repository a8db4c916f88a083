#pragma once

#include <memory>
#include <string>
#include <vector>

#include "job/session/session.h"

namespace cputrain {

/// A program for evaluation only, with its weights (zeros at first) in memory of this process.
struct Inference {
  std::unique_ptr<SharedBlock> memory;
  Array weights;
  std::unique_ptr<Program> program;
};

Inference make_inference(const Session&, const Graph&, std::vector<int> sizes);

/// Fills it from a weight file and warns, on standard error, of weights that are no numbers. Rank 0
/// only. Error(data).
void load_to_use(const std::string& file, const Inference&);

}  // namespace cputrain
