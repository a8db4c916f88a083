#include "exchange/node_blocks.h"

#include <string>
#include <utility>

#include "core/error.h"

namespace cputrain {

std::unique_ptr<NodeBlocks> allocate_blocks(Communicator& communicator,
                                            const ParameterLayout& layout, int lanes) {
  auto blocks = std::make_unique<NodeBlocks>();
  std::unique_ptr<Pages> replica;
  const auto undo = [&] { blocks.reset(); };
  // A rank's own memory first: one rank alone may lack it, while the others wait for shared memory.
  attempt_together(
      communicator, [&] { replica = NodeWeights::make_replica(layout); }, undo);
  attempt_together(
      communicator,
      [&] {
        NodeMemory& memory = communicator.node_memory();
        blocks->gradients = std::make_unique<NodeArrays>(
            memory, layout.gradient_size, layout.dtype, lanes,
            used_gradients(layout, memory.local_rank(), memory.local_size()));
        blocks->weights = std::make_unique<NodeWeights>(memory, layout, std::move(replica));
        blocks->version = std::make_unique<NodeVersion>(memory);
      },
      undo);
  return blocks;
}

void spread_over_nodes(Communicator& communicator, Peers& peers, const NodeMap& map,
                       const NodeWeights& weights) {
  if (!weights.one_copy()) return communicator.broadcast(weights.arena().bytes(), 0);
  if (map.local == 0) {
    PeerGroup firsts(peers, map.lane(0));
    const auto bytes = weights.shared().bytes();
    if (map.node > 0) firsts.receive(0, bytes);
    for (int node = 1; map.node == 0 && node < map.nodes(); ++node) firsts.send(node, bytes);
  }
  communicator.node_barrier().wait();
}

}  // namespace cputrain
