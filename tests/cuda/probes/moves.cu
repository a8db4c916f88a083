// How quickly bytes reach shared memory from L2, and move in the device's memory: E17.
#include "backends/cuda/device/tensor_core.h"
#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

constexpr int kThreads = 256, kBlocksEach = 2, kCopies = 8;
constexpr unsigned kPiece = kThreads * 16, kShared = 4 * kPiece;

/// 16 bytes by way of L1, too; the kernels pass it by (copy_to_shared).
__device__ __forceinline__ void copy_through_l1(void* dst, const void* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(dst)), "l"(src)
               : "memory");
}

/// Each block walks through the same `bytes`, and begins somewhere else.
template <bool kThroughL1>
__global__ void __launch_bounds__(kThreads)
    walk_kernel(const char* src, unsigned bytes, int rounds, float* out) {
  __shared__ alignas(128) char place[kShared];
  const unsigned lane = threadIdx.x * 16;
  unsigned at = blockIdx.x * 37 % (bytes / kPiece) * kPiece;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int k = 0; k < kCopies; ++k) {
      void* const dst = place + k % 4 * kPiece + lane;
      if constexpr (kThroughL1) {
        copy_through_l1(dst, src + at + lane);
      } else {
        copy_to_shared(dst, src + at + lane, true);
      }
      at += kPiece;
      if (at == bytes) at = 0;
    }
    commit_copies();
    wait_for_copies<2>();
  }
  wait_for_copies<0>();
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = place[lane];
}

__global__ void __launch_bounds__(kThreads)
    triad_kernel(const float4* __restrict__ b, const float4* __restrict__ c, float4* a) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  const float4 x = b[i], y = c[i];
  a[i] = make_float4(x.x + 3 * y.x, x.y + 3 * y.y, x.z + 3 * y.z, x.w + 3 * y.w);
}

template <bool kThroughL1>
void ask_walk(const TestStream& stream, const TestArray<char>& src, unsigned megabytes,
              std::optional<double> assumed) {
  constexpr int kRounds = 2000;
  const unsigned blocks = kBlocksEach * multiprocessors();
  const TestArray<float> out(std::size_t{blocks} * kThreads);
  const double seconds = seconds_each(stream, 3, [&] {
    walk_kernel<kThroughL1>
        <<<blocks, kThreads, 0, stream>>>(src.data(), megabytes << 20, kRounds, out.data());
  });
  const double rate = 1e-12 * kPiece * kCopies * kRounds * blocks / seconds;
  say({.name = words("l2-to-shared-%u-mb%s", megabytes, kThroughL1 ? "-through-l1" : ""),
       .question = "E17",
       .value = rate,
       .unit = "TB/s",
       .verdict = verdict_of(rate, assumed, 0.15),
       .text = words("cp.async%s of the same %u MB by all blocks: %.2f TB/s, %.1f GB/s each "
                     "multiprocessor",
                     kThroughL1 ? ".ca" : ".cg", megabytes, rate, 1e3 * rate / multiprocessors())});
}

/// What the model of speed takes for the memory's rate, in TB/s.
std::optional<double> assumed_memory_rate() {
  const std::string name = properties_of_device().name;
  if (name.find("H100") != std::string::npos) return 2.85;
  if (name.find("H200") != std::string::npos) return 4.1;
  return {};
}

void say_memory_rate(const char* name, double bytes, double seconds) {
  const double rate = 1e-12 * bytes / seconds;
  say({.name = name,
       .question = "E17",
       .value = rate,
       .unit = "TB/s",
       .verdict = verdict_of(rate, assumed_memory_rate(), 0.1),
       .text = words("%.2f TB/s, read and written bytes together", rate)});
}

}  // namespace

void ask_moves() {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  constexpr auto kBlocks = static_cast<unsigned>(kBytes / sizeof(float4) / kThreads);
  const TestStream stream;
  const TestArray<char> a(kBytes), b(kBytes), c(kBytes);
  for (const unsigned megabytes : {16u, 1u, 32u}) {
    ask_walk<false>(stream, a, megabytes,
                    megabytes == 16 ? assumed_on_hopper(5.5) : std::optional<double>{});
    ask_walk<true>(stream, a, megabytes, {});
  }
  say_memory_rate(
      "device-copy", 2.0 * kBytes, seconds_each(stream, 10, [&] {
        check(cudaMemcpyAsync(a.data(), b.data(), kBytes, cudaMemcpyDeviceToDevice, stream),
              "cudaMemcpyAsync");
      }));
  const auto floats = [](const TestArray<char>& x) { return reinterpret_cast<float4*>(x.data()); };
  say_memory_rate("device-triad", 3.0 * kBytes, seconds_each(stream, 10, [&] {
                    triad_kernel<<<kBlocks, kThreads, 0, stream>>>(floats(b), floats(c), floats(a));
                  }));
}

}  // namespace cputrain::cuda::probes
