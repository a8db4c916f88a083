#pragma once

#include <cstdint>
#include <cstring>

#include "backends/cuda/device/device.h"
#include "emulated/emulator.h"

/// What the threads of a warp do together, and atomic operations; for language.h and tensor_core.h.
namespace cputrain::emulated {

/// What a lane brings to a shuffle, and takes from it.
struct Shuffle {
  std::uint64_t value, result;
  unsigned source;
};
void shuffle(std::uint32_t mask, const char* what, Place, Shuffle&);

/// `source_of` lane l is the lane whose value it gets.
template <class T, class SourceOf>
T shuffled(std::uint32_t mask, const char* what, Place at, T value, const SourceOf& source_of) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  Shuffle mine{0, 0, source_of(now.self->lane)};
  std::memcpy(&mine.value, &value, sizeof(T));
  shuffle(mask, what, at, mine);
  T result;
  std::memcpy(&result, &mine.result, sizeof(T));
  return result;
}

/// The lanes of the mask that say yes.
unsigned vote(std::uint32_t mask, const char* what, Place, bool yes);

/// What was there before.
int atomic_add(int*, int);
unsigned atomic_add(unsigned*, unsigned);
unsigned long long atomic_add(unsigned long long*, unsigned long long);

/// A lane's part of a product of tiles: acc[i][j] += a[i] * b[j].
struct WarpProduct {
  float* acc;         ///< [rows][columns][4]
  const unsigned* a;  ///< [rows][4]
  const unsigned* b;  ///< [columns][2]
  int rows, columns;
};
void product_of_tf32(WarpProduct&, Place);
void product_of_bf16(WarpProduct&, Place);
void matrices_to_registers(unsigned (&r)[4], const void* row, bool transposed, Place);

/// Its address stands for the type.
template <class T>
inline constexpr char kKeyOf = 0;

/// Behind what the stream holds; throws Error(internal) for what the GPU would not start. The
/// arguments are copied.
void put_kernel(cuda::Stream, KernelLaunch, const void* arguments, std::size_t bytes);

}  // namespace cputrain::emulated
