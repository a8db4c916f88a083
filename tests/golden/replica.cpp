#include "golden/replica.h"

#include <algorithm>
#include <numeric>

#include "comm/solo.h"
#include "model/init.h"

namespace cputrain::golden {

Replica::Replica(Backend& backend, const File& file, std::vector<int> micro_batches)
    : backend_(backend), micro_batches_(std::move(micro_batches)), communicator_(make_solo()) {
  program_ = backend_.compile(
      file.graph, {.phase = Phase::train, .micro_batches = micro_batches_},
      [&](const ParameterLayout& layout) {
        exchange_ = communicator_->make_exchange({.layout = layout, .bucket_bytes = 1 << 20});
        return exchange_->arenas();
      });
  std::size_t parameter = 0;
  for (const auto& node : file.graph.nodes()) {
    for (const auto& spec : node.parameters) {
      program_->from_canonical(parameter++, initial_values(node, spec, file.seed),
                               exchange_->arenas().weights);
    }
  }
  state_.assign(kMaxStateArrays, std::vector<double>(program_->layout().arena_size, 0.0));
}

Tally Replica::step(const Pictures& pictures, const Training* training, int step) {
  const int batch = std::accumulate(micro_batches_.begin(), micro_batches_.end(), 0);
  Tally tally;
  int begin = 0;
  for (const int size : micro_batches_) {
    const bool last = begin + size == batch;
    const auto number = static_cast<std::uint64_t>(step);
    tally += program_->forward(pictures.piece(begin, begin + size),
                               {.phase = Phase::train, .seed = 1, .step = number});
    program_->backward(1.0 / batch, begin == 0 ? Accumulate::overwrite : Accumulate::add,
                       [&](std::size_t n) {
                         if (last) exchange_->ready(n);
                       });
    begin += size;
  }
  exchange_->finish([&](Range range) {
    if (training) update(*training, step, range);
  });
  return tally;
}

void Replica::update(const Training& training, int step, Range range) {
  const auto [weights, gradients] = exchange_->arenas();
  UpdateSlice slice{.weights = weights.slice(range.begin, range.end),
                    .gradients = gradients.slice(range.begin, range.end),
                    .state = {},
                    .learning_rate = training.rate,
                    .weight_decay = 0,
                    .step = static_cast<std::uint64_t>(step)};
  for (int i = 0; i < state_arrays(training.rule); ++i) {
    const Array whole{state_[i].data(), program_->layout().arena_size, backend_.dtype()};
    slice.state[i] = whole.slice(range.begin, range.end);
  }
  backend_.update(training.rule, slice);
}

std::vector<double> Replica::weights(std::size_t parameter) const {
  return program_->to_canonical(parameter, exchange_->arenas().weights);
}

std::vector<double> Replica::gradients(std::size_t parameter) const {
  return program_->to_canonical(parameter, exchange_->arenas().gradients);
}

}  // namespace cputrain::golden
