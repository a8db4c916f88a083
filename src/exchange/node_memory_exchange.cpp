#include "exchange/node_memory_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/communicator.h"

namespace cputrain::exchange {
namespace {

std::size_t arena_bytes(const compute::ParameterLayout& layout) {
  return layout.arena_size * size_of(layout.dtype);
}

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

}  // namespace

std::unique_ptr<system::Pages> NodeWeights::make_replica(const compute::ParameterLayout& layout) {
  if (std::ranges::none_of(layout.parameters, &compute::Parameter::averaged)) return nullptr;
  return std::make_unique<system::Pages>(arena_bytes(layout));
}

NodeWeights::NodeWeights(comm::NodeMemory& memory, const compute::ParameterLayout& layout,
                         std::unique_ptr<system::Pages> replica)
    : size_(layout.arena_size),
      learnt_(layout.gradient_size),
      dtype_(layout.dtype),
      shared_(memory.allocate(arena_bytes(layout))),
      own_(std::move(replica)) {}

void NodeWeights::copy(const Array& dst, const Array& src, Range range) const {
  if (one_copy() || range.size() == 0) return;
  const Array to = dst.slice(range.begin, range.end);
  std::memcpy(to.data, src.slice(range.begin, range.end).data, to.bytes().size());
}

NodeMemoryExchange::NodeMemoryExchange(comm::Communicator& communicator, const comm::NodeMap& map,
                                       const compute::ParameterLayout& layout, int lanes)
    : BasicExchange(communicator),
      map_(map),
      blocks_(allocate_blocks(communicator, layout, lanes)),
      peers_(communicator.make_point_to_point()),
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
    comm::PointToPointGroup firsts(*peers_, map_.lane(0));
    const auto bytes = weights.shared().bytes();
    if (map_.node > 0) firsts.receive(0, bytes);
    for (int node = 1; map_.node == 0 && node < map_.nodes(); ++node) firsts.send(node, bytes);
  }
  communicator_.node_barrier().wait();
}

}  // namespace cputrain::exchange
