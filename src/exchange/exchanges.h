#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/allreduce_choice.h"
#include "comm/communicator.h"
#include "comm/node.h"
#include "compute/device_sums.h"
#include "compute/factors.h"
#include "compute/memory.h"
#include "exchange/buckets.h"
#include "exchange/compression/compression.h"
#include "exchange/exchange.h"

/// The ways to exchange gradients. make_exchange() chooses one.
namespace cputrain::exchange {

/// What they have in common.
struct ExchangeParts {
  comm::Communicator& communicator;
  compute::ParameterLayout layout;
  std::size_t bucket_bytes = 0;  ///< cut buckets at about this size, at parameter boundaries
  bool overlap = false;          ///< buckets are reduced while backward goes on (Buckets)
  std::function<void()> on_thread_start = {};  ///< on the thread that overlaps, if there is one
  comm::SumArrays sum = comm::sum_plainly;     ///< by the calling thread's cores
  /// Where sums are to be the same bits at any number of ranks: how many chunks each rank computes
  /// at once. 0: they need not be.
  int lanes = 0;
  Compression compression{};                                          ///< for what is sent
  compute::AddProducts add_products = compute::add_products_plainly;  ///< for chunks
  /// Where programs and updates want the arenas. What is not host_memory() suits replicas alone.
  compute::Memory& memory = compute::host_memory();
  compute::DeviceSums* device_sums = nullptr;  ///< that memory's, where it is not the host's
};

/// Every rank keeps a replica of the weights and updates all of it: buckets of gradients are summed
/// one by one, in place. All ranks then apply the same update to the same numbers.
/// Memory: two arenas per rank, in `parts.memory`, where the sum must find them, too.
std::unique_ptr<GradientExchange> make_replica_exchange(const ExchangeParts&,
                                                        std::unique_ptr<GradientSum>);

/// The same where `parts.memory` is that of devices, which sum by themselves: as part of each
/// step's last backward pass. `narrow`: as DeviceSums::make().
std::unique_ptr<GradientExchange> make_device_exchange(const ExchangeParts&, compute::DeviceSums&,
                                                       bool narrow);

/// Slices over shared memory. Gradients of all ranks of a node lie in one shared block; each of the
/// first `lanes` ranks of a node sums its slice over them in the order of ranks, then over nodes
/// with the owners of the same slice there (`between_nodes`; all slices travel at once), updates it
/// and writes it into the node's one copy of the weights. After "ZeRO" (Rajbhandari et al. 2020,
/// stage 1) within the node; what nodes send is 2 n (K - 1) / K bytes each for K nodes. A sharded
/// parameter's rows belong to one rank of the node each: it alone makes their gradient and updates
/// them. They travel between nodes as a slice does; all nodes must then have as many ranks. Where
/// ranks keep moving statistics of their own, each also has a replica of the weights, which it
/// copies from the node's. Throws Error(internal) on all ranks where shared memory cannot be had on
/// one node.
std::unique_ptr<GradientExchange> make_node_exchange(const ExchangeParts&, const comm::NodeMap&,
                                                     std::unique_ptr<GradientSum> between_nodes);

/// The same bits at any number of ranks, nodes and lanes (`parts.lanes` of each rank, at least 1):
/// the gradients of chunks, which are a fixed number of images each, are added one after the other
/// in the order of images, micro-batch by micro-batch, each rank adding up its slice over all
/// chunks of all ranks. Micro-batch k of a step has the chunks behind those of micro-batch k - 1,
/// dealt to the ranks in order. Within a node chunks lie in shared memory, and sums and weights as
/// in make_node_exchange; between nodes every chunk travels: n bytes per chunk to each other node,
/// or less where gradients are factors, whose products the owner of a slice forms itself.
std::unique_ptr<GradientExchange> make_ordered_exchange(const ExchangeParts&, const comm::NodeMap&);

/// Rank 0 owns all weights: it sums the gradients of all ranks, updates and sends new weights to
/// all. 2 P n bytes through one rank; there for comparison.
std::unique_ptr<GradientExchange> make_server_exchange(const ExchangeParts&);

/// An exchange, what was chosen, and what a person should know about it.
struct MadeExchange {
  std::unique_ptr<GradientExchange> exchange;
  comm::AllreduceChoice choice;       ///< never automatic, and its ranges are filled in
  std::vector<std::string> lines;     ///< measurements
  std::vector<std::string> warnings;  ///< what could not be had, or is not worth its cost
};

/// Makes the exchange that `choice` names. `automatic` measures, chooses, and prints its choice. On
/// one node it takes slices over shared memory, or replicas where messages are twice as quick
/// (slices spare memory and updates besides) or there is no room for shared memory; over several
/// nodes slices, and of all algorithms the best at the size of a slice. Sharded parameters are for
/// slices alone: then `automatic` throws where there is no room, and the graph must be compiled
/// without. With compression, which needs something that is sent, it takes replicas on one node.
/// Collective. Where the arenas lie on devices, it takes replicas, and the first way of
/// device_path.h. Throws Error(usage) for `shm` on several nodes, where check_compression() does,
/// for slices, a server or lanes where arenas are not the host's, and for a way between devices
/// that cannot be gone; Error(internal) where shared memory was asked for and cannot be had.
MadeExchange make_exchange(const ExchangeParts&, const comm::AllreduceChoice& choice);

}  // namespace cputrain::exchange
