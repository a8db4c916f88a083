#include "compute/parameters.h"

#include <cassert>

namespace cputrain {
namespace {

std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

std::vector<ParameterSpec> specs_of(const Graph& graph) {
  std::vector<ParameterSpec> specs;
  for (const auto& node : graph.nodes()) {
    specs.insert(specs.end(), node.parameters.begin(), node.parameters.end());
  }
  return specs;
}

}  // namespace

ParameterLayout lay_out(const Graph& graph, DType dtype, const std::vector<std::size_t>& stored) {
  constexpr std::size_t kAlignment = 64;  // bytes: a cache line, and an AVX-512 register
  const auto specs = specs_of(graph);
  assert(stored.size() == specs.size());
  ParameterLayout layout;
  layout.dtype = dtype;
  for (const auto& spec : specs) {
    layout.parameters.push_back({spec.name,
                                 spec.extents,
                                 spec.size(),
                                 {},
                                 spec.decays,
                                 spec.learnt,
                                 spec.averaged,
                                 spec.l2});
  }
  std::size_t offset = 0;
  const auto place = [&](bool learnt) {
    for (std::size_t i = specs.size(); i-- > 0;) {
      if (specs[i].learnt != learnt) continue;
      layout.parameters[i].range = {offset, offset + stored[i]};
      offset = round_up(offset + stored[i], kAlignment / size_of(dtype));
    }
    return offset;
  };
  layout.gradient_size = place(true);
  layout.arena_size = place(false);
  return layout;
}

ParameterLayout lay_out(const Graph& graph, DType dtype) {
  std::vector<std::size_t> stored;
  for (const auto& spec : specs_of(graph)) stored.push_back(spec.size());
  return lay_out(graph, dtype, stored);
}

}  // namespace cputrain
