#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// Stacks for the threads of a kernel, and switches between them.
namespace cputrain::emulated {

constexpr unsigned kMostThreads = 1024;  ///< of a block
constexpr std::size_t kPageBytes = 4096;

/// Where code on some stack goes on.
using Context = void*;

/// Goes on at `to`; what called goes on once somebody switches to what is now in `from`.
void switch_context(Context& from, Context to);

/// The stacks, each between pages that may not be touched. They come last in, first out, so that
/// kernels whose threads never wait use one.
class Stacks {
 public:
  static constexpr std::size_t kBytes = std::size_t{64} << 10;

  constexpr Stacks() = default;
  /// Maps them at the first call.
  void make();
  /// Takes a stack. `entry` runs on it at the first switch to the context, and must not return.
  Context begin(void (*entry)(), unsigned& stack);
  void give_back(unsigned stack) { idle_[idle_count_++] = static_cast<std::uint16_t>(stack); }
  /// All are idle again; what ran on them is forgotten.
  void reset();

  bool hold(const void* p) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(p) - base_) < kAllBytes;
  }
  /// Which stack holds an address; one that no stack holds gives a number that no stack has.
  std::size_t stack_of(const void* p) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(p) - base_) / kStride;
  }

 private:
  static constexpr std::size_t kStride = kBytes + kPageBytes;
  static constexpr std::size_t kAllBytes = kStride * kMostThreads;

  std::byte* base_ = nullptr;
  std::array<std::uint16_t, kMostThreads> idle_{};
  unsigned idle_count_ = 0;
};

}  // namespace cputrain::emulated
