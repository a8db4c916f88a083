#pragma once

#include <cstddef>
#include <vector>

#include "core/shape.h"

namespace cputrain::compute {

/// Plans one arena for all blocks of memory that a program needs: blocks whose lifetimes do not
/// meet may share addresses. Time is an integer, the position in the schedule of a training step.
class MemoryPlan {
 public:
  enum class Block : std::size_t {};
  static constexpr std::size_t kAlignment = 64;  // bytes: a cache line, an AVX-512 register

  /// A block of `bytes`; it is alive from its first to its last use.
  Block add(std::size_t bytes);
  void use(Block, int time);
  Block add(std::size_t bytes, int time) {
    const Block block = add(bytes);
    use(block, time);
    return block;
  }

  /// The two become one block, as large as the larger, alive while either is.
  void merge(Block, Block);

  /// Gives every used block an offset: largest first, each at the lowest place that is free during
  /// its whole life ("greedy by size", Pisarchyk and Lee, arXiv 2001.03288).
  void place();

  std::size_t offset(Block) const;
  std::size_t peak() const { return peak_; }  ///< bytes of the arena

 private:
  struct Entry {
    std::size_t bytes = 0;
    int from = 0, until = -1;  ///< until < from: never used
    std::size_t offset = 0;
    std::size_t merged_into;  ///< index of an entry; its own where it stands for itself
  };
  std::size_t root(Block) const;
  std::size_t lowest_offset(const Entry&, const std::vector<const Entry*>& placed) const;

  std::vector<Entry> entries_;
  std::size_t peak_ = 0;
};

/// How the numbers of one sample's activation lie in memory: channels in blocks, in each block the
/// image row by row, in each pixel the block's channels ("nChw16c"). A block of 1 is plain
/// channels-first, and for a flat vector simply the vector; one block for all channels is
/// channels-last. Channels that only fill the last block are zero. Samples follow each other
/// without gaps.
struct SampleLayout {
  Shape shape;
  int block = 1;

  std::size_t blocks() const {
    return (static_cast<std::size_t>(shape.channels) + static_cast<std::size_t>(block) - 1) /
           static_cast<std::size_t>(block);
  }
  /// Numbers of one sample, filling included.
  std::size_t size() const { return blocks() * pixels() * static_cast<std::size_t>(block); }
  bool padded() const { return size() != shape.size(); }

  /// Where the number lies that has position `canonical` in the order height, width, channel.
  std::size_t position(std::size_t canonical) const {
    const auto channels = static_cast<std::size_t>(shape.channels);
    const auto width = static_cast<std::size_t>(block);
    const std::size_t pixel = canonical / channels, channel = canonical % channels;
    return (channel / width * pixels() + pixel) * width + channel % width;
  }

 private:
  std::size_t pixels() const {
    return static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width);
  }
};

}  // namespace cputrain::compute
