#include "comm/allreduce/candidates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "core/error.h"
#include "system/clock.h"

namespace cputrain::comm {
namespace {

class BetweenRanks final : public Candidate {
 public:
  BetweenRanks(Array numbers, Channel channel) : numbers_(numbers), channel_(std::move(channel)) {}
  Array input() const override { return numbers_; }
  Array result() const override { return numbers_; }
  void run() override { channel_.allreduce->sum(numbers_); }

 private:
  Array numbers_;
  Channel channel_;
};

class WithinNode final : public Candidate {
 public:
  WithinNode(Communicator& communicator, const NodeMap& map, const NodeArrays& arrays,
             const Array& copy, const SumArrays& sum, Channel between_nodes)
      : barrier_(communicator.node_barrier()),
        map_(map),
        arrays_(arrays),
        copy_(copy),
        sum_(sum),
        between_nodes_(std::move(between_nodes)) {}
  Array input() const override { return arrays_.mine(); }
  Array result() const override { return copy_; }

  void run() override {
    barrier_.wait();
    if (map_.local < map_.lanes()) {
      const Range own = slice_of({0, copy_.size}, map_.local, map_.lanes());
      const Array sum = copy_.slice(own.begin, own.end);
      sum_(arrays_.slices(own), sum);
      between_nodes_.allreduce->sum(sum);
    }
    barrier_.wait();
  }

 private:
  NodeBarrier& barrier_;
  const NodeMap& map_;
  const NodeArrays& arrays_;
  Array copy_;
  const SumArrays& sum_;
  Channel between_nodes_;
};

}  // namespace

std::unique_ptr<Candidate> between_ranks(const Array& numbers, Channel channel) {
  return std::make_unique<BetweenRanks>(numbers, std::move(channel));
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

std::unique_ptr<Candidate> within_node(Communicator& communicator, const NodeMap& map,
                                       const SharedArrays& shared, const SumArrays& sum,
                                       Channel between_nodes) {
  return std::make_unique<WithinNode>(communicator, map, *shared.arrays, shared.copy(), sum,
                                      std::move(between_nodes));
}

double time_one(Communicator& communicator, Candidate& candidate) {
  communicator.barrier();
  const system::Stopwatch watch;
  candidate.run();
  return largest_of_ranks(communicator, watch.seconds()).value();
}

double median_time(Communicator& communicator, Candidate& candidate, int repeat) {
  candidate.run();
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) seconds.push_back(time_one(communicator, candidate));
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

}  // namespace cputrain::comm
