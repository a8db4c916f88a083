#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/array.h"
#include "system/pages.h"

namespace cputrain::comm {

/// The node's shared memory. A simulated cluster supplies its own.
class NodeMemory {
 public:
  virtual ~NodeMemory() = default;
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  /// The global rank of the node's local rank 0: it identifies the node.
  virtual int first_rank() const = 0;
  /// Collective over the node's ranks, which all ask for the same size. Each of them is the first
  /// to touch the bytes it names, so that they lie in its NUMA node's memory. Bytes that no rank
  /// names cost no memory and must not be written. Where there is not enough memory, all of them
  /// throw Error(internal).
  virtual std::unique_ptr<system::SharedBlock> allocate_touched(std::size_t bytes,
                                                                std::span<const Range> mine) = 0;
  /// The same with an equal part for each, in the order of ranks, of whole pages.
  std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes);

  /// The same for what is large, written once and read from then on, such as decoded images: where
  /// the memory that ranks share is too small (containers), it lies in a file that no other process
  /// sees and that goes with its last one. Collective over the node's ranks. Error(usage) on all of
  /// them where there is no space for it.
  virtual std::unique_ptr<system::SharedBlock> allocate_large(std::size_t bytes) {
    return allocate(bytes);
  }
  /// The folder of the file in which allocate_large() would put so many bytes now; empty for
  /// memory. Collective over the node's ranks; Error(usage) as there.
  virtual std::string folder_of_large(std::size_t) { return {}; }

  /// A folder on disk that has room for a file of so many bytes; empty where there is none, or no
  /// way to share it. Collective over the node's ranks.
  virtual std::string folder_for(std::size_t) { return {}; }
  /// As allocate_large() in a file, in that folder: for what memory has no room for.
  virtual std::unique_ptr<system::SharedBlock> allocate_in(const std::string& folder,
                                                           std::size_t bytes);
};

/// No rank of the node goes on before all have arrived; writes to shared memory before it are seen
/// after it.
class NodeBarrier {
 public:
  virtual ~NodeBarrier() = default;
  virtual void wait() = 0;
};

}  // namespace cputrain::comm
