#include "model/layer_patterns.h"

#include <algorithm>

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

/// Whether it gives the same numbers for the same input in every pass.
bool is_constant(const Graph::Node& node) {
  const bool random = facts_of(node.layer).drops.value_or(0) != 0;
  return !random && (node.parameters.empty() || node.frozen);
}

/// What it does to the channels of what it reads.
Passage passage_of(const Graph& graph, int index) {
  const Graph::Node& node = graph.nodes()[static_cast<std::size_t>(index)];
  const Passage passage = facts_of(node.layer).passage;
  if (passage == Passage::makes || passage == Passage::mixes) return passage;
  // Flattening makes a channel of every pixel.
  return node.dst.channels == graph.src_shape(index).channels ? passage : Passage::mixes;
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
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (facts_of(nodes[i].layer).has_kernel) return names_of(nodes.subspan(i));
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

std::vector<int> frozen_cuts(const Graph& graph) {
  const auto nodes = graph.nodes();
  // By node, the last one that reads it.
  std::vector<int> last_reader(nodes.size(), 0);
  for (int i = 1; i < static_cast<int>(nodes.size()); ++i) {
    for (const int src : nodes[static_cast<std::size_t>(i)].src) {
      last_reader[static_cast<std::size_t>(src)] = i;
    }
  }
  std::vector<int> cuts;
  int needed_until = last_reader[0];  // by the nodes before this one
  for (int i = 1; i + 1 < static_cast<int>(nodes.size()); ++i) {
    if (!is_constant(nodes[static_cast<std::size_t>(i)])) break;
    if (needed_until <= i) cuts.push_back(i);
    needed_until = std::max(needed_until, last_reader[static_cast<std::size_t>(i)]);
  }
  return cuts;
}

double share_of_work(const Graph& graph, int node) {
  double before = 0, all = 0;
  for (int i = 1; i < static_cast<int>(graph.nodes().size()); ++i) {
    const double work = macs(graph.nodes()[static_cast<std::size_t>(i)].layer, graph.src_shape(i));
    all += work;
    if (i <= node) before += work;
  }
  return all > 0 ? before / all : 0;
}

ClassOutputs class_outputs(const Graph& graph) {
  ClassOutputs outputs{.count = graph.back().dst.channels, .arrays = {}, .negated = {}};
  bool sign_passes = outputs.count == 1;
  int index = static_cast<int>(graph.nodes().size()) - 1;
  while (true) {
    const Graph::Node& node = graph.nodes()[static_cast<std::size_t>(index)];
    const Passage through = passage_of(graph, index);
    if (through == Passage::mixes) return {};
    for (const ParameterSpec& spec : node.parameters) outputs.arrays.push_back(spec.name);
    const bool affine = through == Passage::makes || through == Passage::scales;
    if (affine && sign_passes && outputs.negated.empty()) {
      // Kernel and bias, or gamma and beta: the first two of either.
      for (std::size_t i = 0; i < node.parameters.size() && i < 2; ++i) {
        outputs.negated.push_back(node.parameters[i].name);
      }
    }
    if (through == Passage::makes) return outputs;
    if (through == Passage::bends) sign_passes = false;
    index = node.src.front();
    if (graph.readers(index) != 1) return {};
  }
}

}  // namespace cputrain::model
