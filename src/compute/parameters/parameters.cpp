#include "compute/parameters/parameters.h"

#include <algorithm>
#include <cassert>

namespace cputrain::compute {
namespace {

std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

std::vector<model::ParameterSpec> specs_of(const model::Graph& graph) {
  std::vector<model::ParameterSpec> specs;
  for (const auto& node : graph.nodes()) {
    specs.insert(specs.end(), node.parameters.begin(), node.parameters.end());
  }
  return specs;
}

std::vector<Parameter> in_arena_order(const ParameterLayout& layout) {
  std::vector<Parameter> parameters = layout.parameters;
  std::ranges::sort(parameters, {}, [](const Parameter& p) { return p.range.begin; });
  return parameters;
}

std::size_t row_of(const model::ParameterSpec& spec) {
  return spec.sharded && spec.learnt ? static_cast<std::size_t>(spec.extents.back()) : 0;
}

}  // namespace

Range shard_of(const Parameter& parameter, int local, int ranks) {
  assert(parameter.row > 0 && parameter.range.size() % parameter.row == 0);
  const std::size_t rows = parameter.range.size() / parameter.row;
  const auto position = [&](int k) {
    return parameter.range.begin +
           rows * static_cast<std::size_t>(k) / static_cast<std::size_t>(ranks) * parameter.row;
  };
  return {position(local), position(local + 1)};
}

std::vector<Parameter> sharded_parameters(const ParameterLayout& layout) {
  std::vector<Parameter> sharded = in_arena_order(layout);
  std::erase_if(sharded, [](const Parameter& p) { return p.row == 0; });
  return sharded;
}

std::vector<Range> used_gradients(const ParameterLayout& layout, int local, int ranks) {
  std::vector<Range> used;
  const auto add = [&](Range range) {
    if (range.size() == 0) return;
    if (!used.empty() && used.back().end == range.begin) {
      used.back().end = range.end;
    } else {
      used.push_back(range);
    }
  };
  std::size_t position = 0;
  for (const Parameter& parameter : in_arena_order(layout)) {
    const Range all = parameter.range;
    if (parameter.row == 0 && !parameter.factors) continue;
    add({position, all.begin});
    add(parameter.factors ? Range{all.begin, all.begin + parameter.factors->size()}
                          : shard_of(parameter, local, ranks));
    position = all.end;
  }
  add({position, layout.gradient_size});
  return used;
}

ParameterLayout lay_out(const model::Graph& graph, DType dtype,
                        const std::vector<std::size_t>& stored) {
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
                                 spec.l2,
                                 spec.rate,
                                 row_of(spec),
                                 0,
                                 {}});
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

ParameterLayout lay_out(const model::Graph& graph, DType dtype) {
  std::vector<std::size_t> stored;
  for (const auto& spec : specs_of(graph)) stored.push_back(spec.size());
  return lay_out(graph, dtype, stored);
}

}  // namespace cputrain::compute
