#pragma once

#include <cstddef>
#include <vector>

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

}  // namespace cputrain::compute
