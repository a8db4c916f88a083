#include "model/layer_patterns.h"

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::model {
namespace {

using Names = std::vector<std::string>;

constexpr std::string_view kUntil = "until=", kNone = "none";

/// `*` stands for any text.
bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() != '*') {
    return !name.empty() && name.front() == pattern.front() &&
           matches(name.substr(1), pattern.substr(1));
  }
  return matches(name, pattern.substr(1)) || (!name.empty() && matches(name.substr(1), pattern));
}

/// Layers with parameters.
Names names_of(std::span<const Graph::Node> nodes) {
  Names names;
  for (const auto& node : nodes) {
    if (!node.parameters.empty()) names.push_back(node.name);
  }
  return names;
}

[[noreturn]] void refuse(const std::string& pattern, const std::string& mistake,
                         const std::string& name, const Names& names) {
  fail(ExitCode::usage, "--freeze " + pattern + ": " + mistake + did_you_mean(name, names) +
                            " (`cputrain info --model NAME` lists them)");
}

Names names_until(const Graph& graph, const std::string& pattern) {
  const std::string last = pattern.substr(kUntil.size());
  if (last.empty()) {
    refuse(pattern, "no layer is named; write until=LAYER, which freezes all up to it", last, {});
  }
  const auto nodes = graph.nodes();
  auto found = std::ranges::find(nodes, last, &Graph::Node::name);
  if (found == nodes.end()) {  // "blocks.5" is all that is called "blocks.5.1.conv1" and so on
    const auto within = [&](const auto& node) { return node.name.starts_with(last + "."); };
    const auto behind = std::find_if(nodes.rbegin(), nodes.rend(), within);
    if (behind != nodes.rend()) found = std::prev(behind.base());
  }
  if (found == nodes.end()) {
    Names all;
    for (const auto& node : nodes) all.push_back(node.name);
    refuse(pattern, "no layer has this name", last, all);
  }
  return names_of(nodes.first(static_cast<std::size_t>(found - nodes.begin()) + 1));
}

Names names_meant(const Graph& graph, const std::string& pattern) {
  if (pattern == kNone) return {};
  if (pattern == kAllButHead) return backbone_layers(graph);
  if (pattern.starts_with(kUntil)) return names_until(graph, pattern);
  const Names all = names_of(graph.nodes());
  Names meant;
  std::ranges::copy_if(all, std::back_inserter(meant),
                       [&](const std::string& name) { return matches(name, pattern); });
  if (meant.empty()) refuse(pattern, "no layer with weights has this name", pattern, all);
  return meant;
}

}  // namespace

Names layers_matching(const Graph& graph, std::span<const std::string> patterns) {
  Names meant, matching;
  for (const std::string& pattern : patterns) {
    const Names more = names_meant(graph, pattern);
    meant.insert(meant.end(), more.begin(), more.end());
  }
  std::ranges::copy_if(
      names_of(graph.nodes()), std::back_inserter(matching),
      [&](const std::string& name) { return std::ranges::find(meant, name) != meant.end(); });
  return matching;
}

Names head_layers(const Graph& graph) {
  const auto nodes = graph.nodes();
  const auto makes = [](const Graph::Node& node) {
    return std::holds_alternative<Dense>(node.layer) ||
           std::holds_alternative<Convolution>(node.layer);
  };
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (makes(nodes[i])) return names_of(nodes.subspan(i));
  }
  return {};
}

Names backbone_layers(const Graph& graph) {
  const Names head = head_layers(graph);
  Names names = names_of(graph.nodes());
  std::erase_if(
      names, [&](const std::string& name) { return std::ranges::find(head, name) != head.end(); });
  return names;
}

}  // namespace cputrain::model
