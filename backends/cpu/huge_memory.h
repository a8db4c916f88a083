#pragma once

#include <cstddef>
#include <memory>

namespace cputrain::cpu {

struct HugeMemoryDeleter {
  std::size_t bytes;
  void operator()(std::byte*) const;
};
/// Zeros straight from the operating system, for which it is asked to use huge pages; memory that
/// is never touched is never resident. Null for 0 bytes. Throws Error(internal).
using HugeMemory = std::unique_ptr<std::byte, HugeMemoryDeleter>;
HugeMemory allocate_huge(std::size_t bytes);

}  // namespace cputrain::cpu
