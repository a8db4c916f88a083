#pragma once

#include <cstdint>

#include "backends/cuda/device/language.h"

/// Numbers of threads, blocks and chunks. CUDA counts threads and blocks without a sign; kernels
/// compute with `int`, and with 64 bits where offsets begin at a whole array.
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

inline dim3 grid_of(int x, int y = 1, int z = 1) { return dim3(x, y, z); }

/// Products copy 16 bytes at a time: four floats, or eight numbers of bf16.
inline constexpr int kChunkBytes = 16;

template <class N>
inline constexpr int kNumbersOfChunk = kChunkBytes / int{sizeof(typename N::Stored)};

CPUTRAIN_DEVICE const void* chunk_of(const void* array, int number) {
  return static_cast<const char*>(array) + std::int64_t{number} * kChunkBytes;
}

}  // namespace cputrain::cuda
