#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/node.h"
#include "core/array.h"

namespace cputrain::exchange {

/// Where the ranks of a node meet to compute one sharded dense layer: each has some rows of the
/// kernel (compute/parameters/parameters.h: shard_of) and works on these inputs of all images.
///
/// A round is one micro-batch on every rank, ranks without images included:
/// - begin(); own rows of sources() are written; wait(); own columns of sources() times own rows of
///   the kernel give own partial sums; wait(); the sum over ranks of partial_sums(), of own rows,
///   is the layer's output but for the bias.
/// - backward: own rows of diff() are written; wait(); own columns of sources() and diff() give the
///   gradient of own rows of the kernel; then own columns of sources() are overwritten with the
///   gradient of the inputs; wait(); own rows of sources() are taken.
/// Each array is written again only behind a wait() at which its readers arrive after reading.
class SharedLayer {
 public:
  struct Size {
    std::size_t in, out;  ///< an image's
    std::size_t images;   ///< the most that this rank has at once
  };
  /// Collective over the node; Error(internal) on all of its ranks where there is no room.
  SharedLayer(comm::NodeMemory&, const Size&, DType);

  /// A new round with this many images of this rank.
  void begin(std::size_t images);
  /// Until all ranks of the node have come here.
  void wait();
  /// Seconds spent in that since the layer was made.
  double waited() const { return waited_; }

  int local_rank() const { return local_rank_; }
  int ranks() const { return local_size_; }
  /// The node's in this round, and this rank's among them.
  std::size_t images() const { return images_; }
  Range rows() const { return rows_; }

  Array sources() const { return matrix(*sources_, in_); }                ///< images x in
  Array diff() const { return matrix(*diff_, out_); }                     ///< images x out
  Array partial_sums(int rank) const { return partial_sums_->of(rank); }  ///< images x out
  /// This rank's part of the memory.
  std::size_t bytes() const;

 private:
  Array matrix(const system::SharedBlock& block, std::size_t columns) const {
    return {block.bytes().data(), capacity_ * columns, dtype_};
  }
  std::uint64_t& count(int rank) const;

  comm::NodeMemory& memory_;
  int local_rank_, local_size_;
  std::size_t in_, out_;
  DType dtype_;
  std::unique_ptr<system::SharedBlock> counts_;
  std::size_t capacity_;  ///< images that all ranks of the node have at most
  std::unique_ptr<system::SharedBlock> sources_, diff_;
  std::unique_ptr<comm::NodeArrays> partial_sums_;
  std::size_t images_ = 0;
  Range rows_;
  double waited_ = 0;
};

}  // namespace cputrain::exchange
