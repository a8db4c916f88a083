#pragma once

#include <cstddef>
#include <span>

namespace cputrain::system {

/// Memory that is freed with the object, of this process or shared by the ranks of a node. Zeroed;
/// 64-byte aligned.
class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  virtual std::span<std::byte> bytes() const = 0;
};

/// How much of an area will ever be written. Of a sparse one only what is touched takes memory, in
/// small pages, and only that counts where the system promises no more than it has.
enum class Touched { all, sparsely };

/// What malloc keeps, for each thread that asks, of memory that is free again; larger pieces go
/// back to the system at once. What a photograph is resized by is less, or each would be mapped.
constexpr std::size_t kKeptFree = std::size_t{2} << 20;

/// Sees to that, where malloc is glibc's. It else learns to keep pieces of up to 32 MiB and twice
/// that free behind them: an array that is read or written once would stay for ever. Once, before
/// there are threads.
void return_freed_memory();

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
