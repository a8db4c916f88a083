#include <algorithm>

#include "backends/cuda/backend.h"
#include "backends/cuda/device/device.h"
#include "tests/backends/backends_under_test.h"

namespace cputrain::testing {
namespace {

/// All layers but those that ranks share.
bool runs(const model::Graph& graph) {
  return std::ranges::all_of(graph.nodes(), [](const model::Graph::Node& node) {
    const auto* dense = std::get_if<model::Dense>(&node.layer);
    return !dense || !dense->sharded;
  });
}

}  // namespace

std::vector<BackendUnderTest> cuda_backends_under_test() {
  if (!cuda::why_no_device().empty()) return {};
  const bool emulated = cuda::device_properties(0).emulated;
  return {{.name = emulated ? "cuda_emulated" : "cuda",
           .make = [] { return cuda::make_device_backend(); },
           .tolerance = 1e-5,
           .runs = runs,
           .emulated = emulated}};
}

}  // namespace cputrain::testing
