#include "exchange/node_blocks.h"

#include <string>
#include <utility>

#include "core/error.h"
#include "system/clock.h"

namespace cputrain::exchange {

std::unique_ptr<NodeBlocks> allocate_blocks(comm::Communicator& communicator,
                                            const compute::ParameterLayout& layout, int lanes) {
  auto blocks = std::make_unique<NodeBlocks>();
  std::unique_ptr<system::Pages> replica;
  const auto undo = [&] { blocks.reset(); };
  // A rank's own memory first: one rank alone may lack it, while the others wait for shared memory.
  comm::attempt_together(
      communicator, [&] { replica = NodeWeights::make_replica(layout); }, undo);
  comm::attempt_together(
      communicator,
      [&] {
        comm::NodeMemory& memory = communicator.node_memory();
        blocks->gradients = std::make_unique<comm::NodeArrays>(
            memory, layout.gradient_size, layout.dtype, lanes,
            compute::used_gradients(layout, memory.local_rank(), memory.local_size()));
        blocks->weights = std::make_unique<NodeWeights>(memory, layout, std::move(replica));
        blocks->version = std::make_unique<comm::NodeVersion>(memory);
      },
      undo);
  return blocks;
}

void spread_over_nodes(comm::Communicator& communicator, comm::Peers& peers,
                       const comm::NodeMap& map, const NodeWeights& weights) {
  if (!weights.one_copy()) return communicator.broadcast(weights.arena().bytes(), 0);
  if (map.local == 0) {
    comm::PeerGroup firsts(peers, map.lane(0));
    const auto bytes = weights.shared().bytes();
    if (map.node > 0) firsts.receive(0, bytes);
    for (int node = 1; map.node == 0 && node < map.nodes(); ++node) firsts.send(node, bytes);
  }
  communicator.node_barrier().wait();
}

double sum_measures(std::span<const Measure> measures, comm::Allreduce& over_owners) {
  double seconds = 0;
  for (const Measure& measure : measures) {
    const std::span<double> own = measure();
    const system::Stopwatch watch;
    over_owners.sum(Array::of(own));
    seconds += watch.seconds();
  }
  return seconds;
}

}  // namespace cputrain::exchange
