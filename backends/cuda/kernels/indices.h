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

CPUTRAIN_DEVICE const void* chunk_of(const void* array, int number) {
  return static_cast<const char*>(array) + offset_of_row(number, kChunkBytes);
}

}  // namespace cputrain::cuda
