#pragma once

#include <cstdint>

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/shapes.h"

/// Numbers of threads, blocks and chunks. CUDA counts threads and blocks without a sign; kernels
/// compute with `int`, and with 64 bits where an offset reaches over a whole array.
namespace cputrain::cuda {

struct ThreadNumber {
  int x, y;

  CPUTRAIN_DEVICE static ThreadNumber of_thread() {
    return {static_cast<int>(threadIdx.x), static_cast<int>(threadIdx.y)};
  }
};
CPUTRAIN_DEVICE int thread_number() { return ThreadNumber::of_thread().x; }

struct BlockNumber {
  int x, y, z;

  CPUTRAIN_DEVICE static BlockNumber of_thread() {
    return {static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y),
            static_cast<int>(blockIdx.z)};
  }
};
CPUTRAIN_DEVICE int block_number() { return BlockNumber::of_thread().x; }

/// Threads of a block.
struct BlockSize {
  int x, y;

  CPUTRAIN_DEVICE static BlockSize of_thread() {
    return {static_cast<int>(blockDim.x), static_cast<int>(blockDim.y)};
  }
};

/// A grid or a block: fewer than 2^31 along x.
inline dim3 grid_of(std::int64_t x, int y = 1, int z = 1) { return dim3(x, y, z); }

/// Threads of most blocks.
inline constexpr int kPackThreads = 256;

/// The first number of a thread in block `block` of those that share a row, `kWidth` to a thread.
template <int kWidth>
CPUTRAIN_DEVICE std::int64_t first_of_thread(std::int64_t block) {
  return (offset_of_row(block, kPackThreads) + thread_number()) * kWidth;
}

/// Launches a thread for every `width` of a row's `count` numbers; nothing for none.
template <class... Parameters, class... Arguments>
void launch_row(Stream stream, const char* name, void (*kernel)(Parameters...), int width,
                std::int64_t count, Arguments... arguments) {
  if (count == 0) return;
  launch(stream, name, kernel, grid_of(pieces(count, kPackThreads * width)), dim3(kPackThreads), 0,
         count, arguments...);
}

CPUTRAIN_DEVICE const void* chunk_of(const void* array, int number) {
  return static_cast<const char*>(array) + offset_of_row(number, kChunkBytes);
}

}  // namespace cputrain::cuda
