#include "tests/golden/replica.h"

#include <algorithm>
#include <numeric>

#include "comm/communicator.h"
#include "exchange/exchanges.h"
#include "model/graph.h"

namespace cputrain::golden {

namespace {

void set_start(const compute::Program& program, const model::Graph& graph, const Start& start,
               const Array& weights) {
  std::size_t parameter = 0;
  for (const auto& node : graph.nodes()) {
    for (const auto& spec : node.parameters) {
      program.parameters().from_canonical(parameter++, start(node, spec), weights);
    }
  }
}

}  // namespace

Start keras_start(std::uint64_t seed) {
  return [seed](const auto& node, const auto& spec) {
    return model::initial_values(node, spec, seed);
  };
}

Start varied_start(std::uint64_t seed) {
  return [seed](const auto&, const auto& spec) { return start_values(spec, seed); };
}

Replica::Replica(compute::Backend& backend, const model::Graph& graph, const Start& start,
                 std::vector<int> micro_batches)
    : backend_(backend),
      micro_batches_(std::move(micro_batches)),
      communicator_(comm::make_solo()) {
  program_ =
      backend_.compile(graph, {.phase = compute::Phase::train, .micro_batches = micro_batches_},
                       [&](const compute::ParameterLayout& layout) {
                         exchange_ = exchange::make_exchange({.communicator = *communicator_,
                                                              .layout = layout,
                                                              .bucket_bytes = 1 << 20,
                                                              .memory = backend.memory()},
                                                             {})
                                         .exchange;
                         return exchange_->arenas();
                       });
  set_start(*program_, graph, start, exchange_->arenas().weights);
}

compute::Tally Replica::step(const Samples& samples, const Update* rule, int step) {
  const int batch = std::accumulate(micro_batches_.begin(), micro_batches_.end(), 0);
  int begin = 0, micro_batch = 0;
  for (const int size : micro_batches_) {
    const auto number = static_cast<std::uint64_t>(step);
    program_->forward(
        samples.piece(begin, begin + size),
        {.phase = compute::Phase::train, .seed = 1, .step = number, .probabilities = true});
    const compute::Accumulate accumulate = exchange_->begin(micro_batch++, begin + size == batch);
    program_->backward({1.0 / batch, accumulate,
                        [&](std::size_t n, compute::Event* after) { exchange_->ready(n, after); }});
    begin += size;
  }
  exchange_->finish([&](Range range) {
    if (rule) update(*rule, step, range);
  });
  program_->publish_statistics();
  return program_->tally().wait();
}

void Replica::update(const Update& rule, int step, Range range) {
  const std::size_t elements = program_->layout().gradient_size;
  while (std::ssize(state_) < optim::state_arrays(rule.rule)) {
    state_.emplace_back(backend_.memory(), elements, backend_.dtype());
  }
  const auto [weights, gradients] = exchange_->arenas();
  optim::UpdateSlice slice{.weights = weights.slice(range.begin, range.end),
                           .gradients = gradients.slice(range.begin, range.end)};
  for (int i = 0; i < optim::state_arrays(rule.rule); ++i) {
    const auto number = static_cast<std::size_t>(i);
    slice.state[number] = state_[number].array().slice(range.begin, range.end);
  }
  backend_.make_update({rule.rule, {slice}})
      ->apply({rule.rule, rule.rate, static_cast<std::uint64_t>(step)});
}

std::vector<double> Replica::weights(std::size_t parameter) const {
  return program_->parameters().to_canonical(parameter, exchange_->arenas().weights);
}

std::vector<double> Replica::gradients(std::size_t parameter) const {
  return program_->parameters().to_canonical(parameter, exchange_->arenas().gradients);
}

Evaluator::Evaluator(compute::Backend& backend, const model::Graph& graph, const Start& start,
                     std::vector<int> sizes, compute::Phase phase)
    : phase_(phase) {
  program_ = backend.compile(graph, {.phase = phase, .micro_batches = std::move(sizes)},
                             [&](const compute::ParameterLayout& layout) {
                               weights_ = compute::OwnedArray(backend.memory(), layout.arena_size,
                                                              layout.dtype);
                               return compute::Arenas{weights_.array(), {}};
                             });
  set_start(*program_, graph, start, weights_.array());
}

}  // namespace cputrain::golden
