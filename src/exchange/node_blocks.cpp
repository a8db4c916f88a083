#include "exchange/node_blocks.h"

#include <utility>

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

}  // namespace cputrain::exchange
