#include "comm/node_blocks.h"

#include <string>

#include "core/error.h"

namespace cputrain {

std::unique_ptr<NodeBlocks> allocate_blocks(Communicator& communicator,
                                            const ParameterLayout& layout, int lanes) {
  std::unique_ptr<NodeBlocks> blocks;
  std::string failure;
  try {
    blocks = std::make_unique<NodeBlocks>(communicator.node_memory(), layout, lanes);
  } catch (const Error& error) {
    failure = error.what();
  }
  for (const std::string& text : communicator.gather(failure)) {
    if (!text.empty()) fail(ExitCode::internal, text);
  }
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
