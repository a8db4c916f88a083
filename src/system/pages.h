#pragma once

#include <cstddef>
#include <span>

#include "system/shared_block.h"

namespace cputrain::system {

/// How much of an area will ever be written. Of a sparse one only what is touched takes memory, in
/// small pages, and only that counts where the system promises no more than it has.
enum class Touched { all, sparsely };

/// Zeroed memory of this process alone: whole pages from the kernel, in huge ones (2 MiB, fewer
/// misses of the address translation) where the area is large enough for them. A page lies on the
/// NUMA node of the thread that writes it first. Throws Error(internal) when there is no memory.
class Pages final : public SharedBlock {
 public:
  explicit Pages(std::size_t bytes, Touched = Touched::all);
  ~Pages() override;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace cputrain::system
