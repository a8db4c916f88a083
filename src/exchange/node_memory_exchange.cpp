#include "exchange/node_memory_exchange.h"

#include <utility>

namespace cputrain::exchange {

NodeMemoryExchange::NodeMemoryExchange(comm::Communicator& communicator, const comm::NodeMap& map,
                                       std::unique_ptr<NodeBlocks> blocks)
    : BasicExchange(communicator),
      map_(map),
      blocks_(std::move(blocks)),
      peers_(communicator.make_peers()),
      node_(*peers_, map.own()),
      over_owners_(comm::make_tree(node_)) {}

void NodeMemoryExchange::meet() {
  communicator_.barrier();
  communicator_.node_barrier().wait();
}

void NodeMemoryExchange::end_update() {
  blocks_->weights->fetch();
  blocks_->version->end();
}

void NodeMemoryExchange::spread_weights() {
  const NodeWeights& weights = *blocks_->weights;
  if (!weights.one_copy()) return communicator_.broadcast(weights.arena().bytes(), 0);
  if (map_.local == 0) {
    comm::PeerGroup firsts(*peers_, map_.lane(0));
    const auto bytes = weights.shared().bytes();
    if (map_.node > 0) firsts.receive(0, bytes);
    for (int node = 1; map_.node == 0 && node < map_.nodes(); ++node) firsts.send(node, bytes);
  }
  communicator_.node_barrier().wait();
}

}  // namespace cputrain::exchange
