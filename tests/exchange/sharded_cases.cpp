#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "exchange/exchanges.h"
#include "tests/exchange/cases.h"

/// Exchanges of parameters of which each rank of a node makes the gradient of some rows.
namespace cputrain::exchange {

namespace {

/// The gradient of a rank's images at element i; small whole numbers.
float of_rank(int rank, int step, std::size_t i) {
  return static_cast<float>((rank + 1 + step) * (static_cast<int>(i * 7 % 101) - 50));
}

float of_ranks(const std::vector<int>& ranks, int step, std::size_t i) {
  float sum = 0;
  for (const int rank : ranks) sum += of_rank(rank, step, i);
  return sum;
}

/// Two sharded parameters between others: of 9 rows of 7, and of 2 rows, fewer than some nodes have
/// ranks.
compute::ParameterLayout made_layout() {
  compute::ParameterLayout layout;
  const auto add = [&](std::size_t count, std::size_t row) {
    const std::size_t begin = layout.arena_size;
    layout.parameters.push_back({.name = "p" + std::to_string(layout.parameters.size()),
                                 .extents = {static_cast<int>(count)},
                                 .count = count,
                                 .range = {begin, begin + count},
                                 .decays = true,
                                 .learnt = true,
                                 .averaged = false,
                                 .l2 = 0,
                                 .rate = 1,
                                 .row = row});
    layout.gradient_size = layout.arena_size = (begin + count + 15) / 16 * 16;
  };
  add(31, 0);
  add(9 * 7, 7);
  add(20, 0);
  add(2 * 5000, 5000);
  add(300, 0);
  std::ranges::reverse(layout.parameters);  // the last one lies first
  return layout;
}

bool in_shard(const compute::ParameterLayout& layout, std::size_t i) {
  return std::ranges::any_of(layout.parameters, [&](const compute::Parameter& p) {
    return p.row > 0 && i >= p.range.begin && i < p.range.end;
  });
}

/// Every rank makes the node's gradient of its own rows and its own gradient of all else, and
/// touches nothing more.
void expect_sums(comm::Communicator& comm, const std::string& allreduce, bool overlap,
                 std::size_t bucket_bytes) {
  const comm::NodeMap map = comm::read_node_map(comm);
  if (!map.even()) return;  // then nothing may be sharded
  const compute::ParameterLayout layout = made_layout();
  const ExchangeParts parts{comm, layout, bucket_bytes, overlap};
  const auto exchange = make_exchange(parts, comm::parse_allreduce(allreduce)).exchange;
  const auto used = compute::used_gradients(layout, map.local, map.local_size());
  std::size_t elements = 0;
  for (const Range& range : used) elements += range.size();
  EXPECT_EQ(exchange->memory().own, elements * sizeof(float));
  std::vector<int> all(static_cast<std::size_t>(comm.size()));
  for (int rank = 0; rank < comm.size(); ++rank) all[static_cast<std::size_t>(rank)] = rank;
  std::vector<float> expected(layout.arena_size);
  const auto weights = exchange->arenas().weights.as<float>();
  const auto gradients = exchange->arenas().gradients.as<float>();
  for (int step = 0; step < 3; ++step) {
    exchange->begin(0, true);
    for (const Range& range : used) {
      for (std::size_t i = range.begin; i < range.end; ++i) {
        gradients[i] =
            in_shard(layout, i) ? of_ranks(map.own(), step, i) : of_rank(comm.rank(), step, i);
      }
      exchange->ready(range.end);
    }
    exchange->ready(layout.gradient_size);
    exchange->finish([&](Range range) {
      for (std::size_t i = range.begin; i < range.end; ++i) weights[i] -= gradients[i];
    });
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] -= of_ranks(all, step, i);
      if (weights[i] != expected[i]) {
        FAIL() << weights[i] << " instead of " << expected[i] << " at " << i << " in step " << step;
      }
    }
  }
}

struct ShardedWay {
  std::string name, allreduce;
  bool overlap = false;
};

}  // namespace

std::vector<comm::CommCase> sharded_exchange_cases() {
  std::vector<comm::CommCase> cases;
  for (const ShardedWay& way :
       {ShardedWay{"automatic", "auto"}, ShardedWay{"slices", "hierarchical+ring"},
        ShardedWay{"overlapped", "hierarchical+rabenseifner", kOverlap}}) {
    for (const std::size_t bucket_bytes : {std::size_t{100}, std::size_t{1} << 30}) {
      cases.push_back({"sharded_" + way.name + (bucket_bytes == 100 ? "_buckets" : "_one_bucket"),
                       [way, bucket_bytes](comm::Communicator& comm) {
                         expect_sums(comm, way.allreduce, way.overlap, bucket_bytes);
                       }});
    }
  }
  return cases;
}

}  // namespace cputrain::exchange
