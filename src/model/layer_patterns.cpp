#include "model/layer_patterns.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::model {
namespace {

bool matches(const std::string& name, const std::string& pattern) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

std::vector<std::string> layers_matching(const Graph& graph,
                                         std::span<const std::string> patterns) {
  std::vector<std::string> names, matching;
  for (const auto& node : graph.nodes()) {
    if (!node.parameters.empty()) names.push_back(node.name);
  }
  for (const std::string& pattern : patterns) {
    const auto fits = [&](const std::string& name) { return matches(name, pattern); };
    if (std::ranges::none_of(names, fits)) {
      fail(ExitCode::usage, "--freeze " + pattern + ": no layer with weights has this name" +
                                did_you_mean(pattern, names) +
                                " (`cputrain info` lists the layers)");
    }
  }
  std::ranges::copy_if(names, std::back_inserter(matching), [&](const std::string& name) {
    return std::ranges::any_of(patterns, [&](const auto& p) { return matches(name, p); });
  });
  return matching;
}

}  // namespace cputrain::model
