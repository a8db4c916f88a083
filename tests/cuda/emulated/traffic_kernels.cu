#include <cstdint>
#include <map>

#include "backends/cuda/device/tensor_core.h"
#include "emulated/test_kernels.h"

/// Kernels whose bytes anyone can count.
namespace cputrain::emulated {
namespace {

using cuda::shared;

/// All of x twice, each time by other threads; one in eight of y.
__global__ void read_twice(TrafficArguments a) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float mine = a.x[i % kTrafficFloats];
  if (mine < 0) a.y[0] = mine;  // else only those that are written would be read
  if (i < kTrafficFloats && i % 8 == 0) a.y[i] = mine;
}

/// x by 16 bytes a thread, the first half of y by 8.
__global__ void move_vectors(TrafficArguments a) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 four = reinterpret_cast<const float4*>(a.x)[i];
  reinterpret_cast<float2*>(a.y)[i] = {four.x + four.z, four.y + four.w};
}

/// Three chunks of 16 bytes a thread, in one assignment.
struct alignas(16) Chunks {
  float4 of[3];
};
__global__ void move_structs(TrafficArguments a) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  reinterpret_cast<Chunks*>(a.y)[i] = reinterpret_cast<const Chunks*>(a.x)[i];
}

/// Each block copies the same 16 chunks of x but for the last, to which zeros go, and reads them in
/// shared memory 64 times. A thread writes a float.
struct alignas(16) Staged {
  float of[16][4];
};
__global__ void stage(TrafficArguments a) {
  auto& s = shared<Staged>();
  const unsigned i = threadIdx.x;
  if (i < 16) cuda::copy_to_shared(s.of[i], a.x + 4 * i, i < 15);
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  float sum = 0;
  for (unsigned k = 0; k < 64; ++k) sum += s.of[(i + k) % 16][k % 4];
  a.y[blockIdx.x * blockDim.x + i] = sum;
}

/// Every thread adds to one word.
__global__ void add_atomically(TrafficArguments a) { atomicAdd(a.words, 1u); }

/// Every 31st byte.
__global__ void read_bytes(TrafficArguments a) {
  const unsigned i = threadIdx.x;
  a.bytes[i] = __ldg(reinterpret_cast<const std::uint8_t*>(a.x) + 31 * i);
}

const std::map<std::string, void (*)(TrafficArguments)>& kernels() {
  static const std::map<std::string, void (*)(TrafficArguments)> all{
      {"read_twice", read_twice},         {"move_vectors", move_vectors},
      {"move_structs", move_structs},     {"stage", stage},
      {"add_atomically", add_atomically}, {"read_bytes", read_bytes},
  };
  return all;
}

}  // namespace

void launch_traffic(const char* kernel, cuda::Stream stream, unsigned blocks, unsigned threads,
                    const TrafficArguments& a) {
  cuda::launch(stream, kernel, kernels().at(kernel), dim3(blocks), dim3(threads), 0, a);
}

}  // namespace cputrain::emulated
