// Addresses: copies of nothing from where nobody may read, and offsets of many gigabytes: E4, E13.
#include "backends/cuda/device/tensor_core.h"
#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

__global__ void empty_copy_kernel(const float* bad, float4* out) {
  __shared__ alignas(16) float4 place[32];
  place[threadIdx.x] = make_float4(1, 2, 3, 4);
  __syncwarp();
  copy_to_shared(place + threadIdx.x, bad, false);
  commit_copies();
  wait_for_copies<0>();
  __syncwarp();
  out[threadIdx.x] = place[threadIdx.x];
}

constexpr std::size_t kTurn = std::size_t{1} << 30;  // floats of 2^32 bytes

/// Each block copies 128 floats that begin at a multiple of kTurn to another array, and marks them.
__global__ void far_kernel(float* wide, float* out, std::size_t turns) {
  __shared__ alignas(16) float piece[128];
  const std::size_t turn = blockIdx.x;
  if (turn >= turns) return;
  const int i = static_cast<int>(threadIdx.x) * 4;
  float* const here = wide + turn * kTurn + i;
  for (int k = 0; k < 4; ++k) here[k] = static_cast<float>(turn * 1000 + i + k);
  __syncthreads();
  copy_to_shared(piece + i, here, true);
  commit_copies();
  wait_for_copies<0>();
  for (int k = 0; k < 4; ++k) out[turn * 128 + i + k] = piece[i + k];
}

}  // namespace

void ask_empty_copy() {
  const TestStream stream;
  const TestArray<float4> out(32);
  empty_copy_kernel<<<1, 32, 0, stream>>>(reinterpret_cast<const float*>(0x10), out.data());
  const cudaError_t status = cudaStreamSynchronize(stream);
  int wrong = 0;
  if (status == cudaSuccess) {
    for (const float4& f : out.read()) wrong += f.x != 0 || f.y != 0 || f.z != 0 || f.w != 0;
  }
  say({.name = "empty-copy",
       .question = "E4",
       .verdict = verdict_of(status == cudaSuccess && wrong == 0),
       .text = words("cp.async of 0 bytes from address 16: %s, %d of 32 places are not zero",
                     cudaGetErrorName(status), wrong)});
}

void ask_far_addresses() {
  std::size_t free = 0, all = 0;
  check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  std::size_t turns = 4;  // of 4 GiB, of the last one 512 bytes
  while (turns > 1 && ((turns - 1) * kTurn + 128) * sizeof(float) + (std::size_t{1} << 28) > free) {
    --turns;
  }
  if (turns == 1) {
    return say({.name = "far-addresses",
                .question = "E13",
                .text = words("not asked: %.1f GB of memory are free", 1e-9 * double(free))});
  }
  float* wide = nullptr;
  check(cudaMalloc(&wide, ((turns - 1) * kTurn + 128) * sizeof(float)), "cudaMalloc");
  const TestStream stream;
  const TestArray<float> out(turns * 128);
  far_kernel<<<static_cast<unsigned>(turns), 32, 0, stream>>>(wide, out.data(), turns);
  stream.wait("writes to far addresses");
  int wrong = 0;
  const std::vector<float> through_shared = out.read();
  for (std::size_t turn = 0; turn < turns; ++turn) {
    std::vector<float> read(128);
    check(cudaMemcpy(read.data(), wide + turn * kTurn, 512, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (std::size_t i = 0; i < 128; ++i) {
      const auto want = static_cast<float>(turn * 1000 + i);
      wrong += read[i] != want || through_shared[turn * 128 + i] != want;
    }
  }
  static_cast<void>(cudaFree(wide));
  say({.name = "far-addresses",
       .question = "E13",
       .value = static_cast<double>(turns - 1) * 4,
       .unit = "GiB",
       .verdict = verdict_of(wrong == 0),
       .text = words("up to offset %zu * 2^32 bytes, %d of %zu floats are wrong", turns - 1, wrong,
                     turns * 128)});
}

}  // namespace cputrain::cuda::probes
