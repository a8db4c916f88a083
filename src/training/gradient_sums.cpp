#include "training/gradient_sums.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "exchange/compression/compression.h"
#include "exchange/exchange.h"
#include "exchange/exchanges.h"

namespace cputrain::training {
namespace {

/// The node of the graph that each parameter is of, in the order of the arena's layout.
std::vector<std::size_t> nodes_of_parameters(const model::Graph& graph) {
  std::vector<std::size_t> nodes;
  for (std::size_t node = 0; node < graph.nodes().size(); ++node) {
    nodes.insert(nodes.end(), graph.nodes()[node].parameters.size(), node);
  }
  return nodes;
}

/// An arena of so many float32 that begins with the parameter.
compute::ParameterLayout layout_of(compute::Parameter parameter, std::size_t elements) {
  compute::ParameterLayout layout;
  layout.parameters.push_back(std::move(parameter));
  layout.gradient_size = layout.arena_size = elements;
  return layout;
}

compute::ParameterLayout dense_layout(std::size_t elements) {
  constexpr std::size_t kColumns = 512;
  const std::size_t rows = elements / kColumns, whole = rows * kColumns;
  return layout_of({.name = "kernel",
                    .extents = {static_cast<int>(rows), static_cast<int>(kColumns)},
                    .count = whole,
                    .range = {0, whole},
                    .decays = true,
                    .learnt = true,
                    .averaged = false,
                    .l2 = 0},
                   elements);
}

}  // namespace

std::vector<GradientBucket> gradient_buckets(const model::Graph& graph, std::size_t bytes) {
  const compute::ParameterLayout layout = compute::lay_out(graph, DType::f32);
  const std::vector<std::size_t> nodes = nodes_of_parameters(graph);
  std::vector<GradientBucket> buckets;
  std::size_t begin = 0;
  for (const std::size_t end : exchange::bucket_ends(layout, bytes)) {
    // Backward goes from the last node to the first. A bucket of padding alone follows the others.
    std::size_t last_node = buckets.empty() ? graph.nodes().size() - 1 : buckets.back().last_node;
    for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
      const compute::Parameter& parameter = layout.parameters[i];
      const bool inside = parameter.range.begin >= begin && parameter.range.begin < end;
      if (parameter.learnt && inside) last_node = std::min(last_node, nodes[i]);
    }
    buckets.push_back({static_cast<double>((end - begin) * size_of(layout.dtype)), last_node});
    begin = end;
  }
  return buckets;
}

std::string automatic_allreduce(comm::Communicator& communicator, std::size_t elements,
                                const comm::SumArrays& sum) {
  const exchange::ExchangeParts parts{.communicator = communicator,
                                      .layout = layout_of({.name = "all",
                                                           .extents = {static_cast<int>(elements)},
                                                           .count = elements,
                                                           .range = {0, elements},
                                                           .decays = false,
                                                           .learnt = true,
                                                           .averaged = false,
                                                           .l2 = 0},
                                                          elements),
                                      .bucket_bytes = elements * sizeof(float),
                                      .sum = sum};
  return comm::to_text(exchange::make_exchange(parts, {}).choice);
}

std::vector<std::string> compressions() {
  std::vector<std::string> words;
  for (const exchange::Compression& compression : exchange::compressions()) {
    words.push_back(exchange::to_text(compression));
  }
  return words;
}

std::pair<std::function<void(const Array& gradient)>, double> compressed_sum(
    const std::string& compression, std::size_t elements, comm::Channel channel) {
  const Range all{0, elements};
  const std::shared_ptr<exchange::GradientSum> sum = exchange::make_gradient_sum(
      exchange::parse_compression(compression), dense_layout(elements), std::move(channel));
  return {[=](const Array& gradient) { sum->sum(all, gradient); },
          exchange::compression_ratio(*sum, {&all, 1}, DType::f32)};
}

}  // namespace cputrain::training
