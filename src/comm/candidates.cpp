#include "comm/candidates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "system/clock.h"

namespace cputrain::comm {

Candidate between_ranks(const Array& numbers, Channel channel) {
  const auto kept = std::make_shared<Channel>(std::move(channel));
  return {numbers, numbers, [kept, numbers] { kept->allreduce->sum(numbers); }};
}

SharedArrays::SharedArrays(Communicator& communicator, std::size_t elements) {
  const auto make = [&] {
    NodeMemory& memory = communicator.node_memory();
    arrays = std::make_unique<NodeArrays>(memory, elements, DType::f32);
    block = memory.allocate(elements * sizeof(float));
  };
  try {
    attempt_together(communicator, make, [&] {
      arrays.reset();
      block.reset();
    });
  } catch (const Error& error) {
    failure = error.what();
  }
}

Array SharedArrays::copy() const {
  return {block->bytes().data(), block->bytes().size() / sizeof(float), DType::f32};
}

Candidate within_node(Communicator& communicator, const NodeMap& map, const SharedArrays& shared,
                      const SumArrays& sum, Channel between_nodes) {
  const NodeArrays& arrays = *shared.arrays;
  const Array copy = shared.copy();
  const auto kept = std::make_shared<Channel>(std::move(between_nodes));
  return {arrays.mine(), copy, [&communicator, &map, &arrays, &sum, copy, kept] {
            communicator.node_memory().barrier();
            if (map.local < map.lanes()) {
              const Range own = slice_of({0, copy.size}, map.local, map.lanes());
              const Array slice = copy.slice(own.begin, own.end);
              sum(arrays.slices(own), slice);
              kept->allreduce->sum(slice);
            }
            communicator.node_memory().barrier();
          }};
}

double time_one(Communicator& communicator, const Candidate& candidate) {
  communicator.barrier();
  const system::Stopwatch watch;
  candidate.run();
  return largest_of_ranks(communicator, watch.seconds()).value();
}

double median_time(Communicator& communicator, const Candidate& candidate, int repeat) {
  candidate.run();
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) seconds.push_back(time_one(communicator, candidate));
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

}  // namespace cputrain::comm
