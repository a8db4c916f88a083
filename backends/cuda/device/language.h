#pragma once

/// CUDA C++ as the kernels here are written: nvcc compiles it, and so does g++ for the emulated
/// device of the tests, whose language.h has the same names. Besides threadIdx and its like,
/// __syncthreads, __syncwarp, __shfl_*_sync and __ballot_sync kernels may use what follows; plain
/// pointers, no containers, no std::array, no atomics on floats (sums must have the same bits every
/// time).
#ifdef __CUDACC__

#include <cuda_runtime.h>

#include <cstddef>

#include "backends/cuda/device/device.h"

/// Before every function that only kernels call.
#define CPUTRAIN_DEVICE __device__ __forceinline__

namespace cputrain::cuda {

/// One T for all threads of the block; it has no constructor and holds anything at first.
template <class T>
CPUTRAIN_DEVICE T& shared() {
  __shared__ T storage;
  return storage;
}

/// The shared memory that the launch asked for.
template <class T>
CPUTRAIN_DEVICE T& dynamic_shared() {
  extern __shared__ __align__(128) unsigned char bytes_of_the_block[];
  return *reinterpret_cast<T*>(bytes_of_the_block);
}

/// Puts a kernel into the stream. Its name is for messages; `shared_bytes` are of dynamic_shared().
template <class... Parameters, class... Arguments>
void launch(Stream stream, const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            std::size_t shared_bytes, Arguments... arguments) {
  if (shared_bytes > 0) {
    reserve_shared_memory(name, reinterpret_cast<const void*>(kernel), shared_bytes);
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = reinterpret_cast<cudaStream_t>(stream);
  cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
  check_launch(name);
}

}  // namespace cputrain::cuda

#else

#include "emulated/language.h"

#endif
