#pragma once

#include <cstddef>
#include <span>

#include "system/host_calls.h"

namespace cputrain::system {

/// Memory that is freed with the object, of this process or shared by the ranks of a node. Zeroed;
/// 64-byte aligned.
class SharedBlock {
 public:
  SharedBlock() = default;
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;
  virtual ~SharedBlock() = default;
  virtual std::span<std::byte> bytes() const = 0;
};

/// What malloc keeps in the program, for each thread that asks, of memory that is free again;
/// larger pieces go back to the system at once. What a photograph is resized by is less, or each
/// would be mapped.
constexpr std::size_t kKeptFree = std::size_t{2} << 20;

/// Zeroed memory of this process alone: whole pages from the kernel, in huge ones (2 MiB, fewer
/// misses of the address translation) where the area is large enough for them. A page lies on the
/// NUMA node of the thread that writes it first. Throws Error(internal) when there is no memory.
class Pages final : public SharedBlock {
 public:
  explicit Pages(std::size_t bytes, bool sparsely = false) {
    if (bytes > 0) bytes_ = host_calls().map(bytes, sparsely);  // the kernel refuses to map nothing
  }
  ~Pages() override {
    if (!bytes_.empty()) host_calls().unmap(bytes_);
  }

  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace cputrain::system
