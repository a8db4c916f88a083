// How quickly bytes move in the device's memory: E17.
#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    triad_kernel(const float4* __restrict__ b, const float4* __restrict__ c, float4* a) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  const float4 x = b[i], y = c[i];
  a[i] = make_float4(x.x + 3 * y.x, x.y + 3 * y.y, x.z + 3 * y.z, x.w + 3 * y.w);
}

/// What the model of speed takes for the memory's rate, in TB/s.
std::optional<double> assumed_memory_rate() {
  const std::string name = properties_of_device().name;
  if (name.find("H100") != std::string::npos) return 2.85;
  if (name.find("H200") != std::string::npos) return 4.3;
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
  constexpr std::size_t kBytes = std::size_t{512} << 20;  // of which L2 keeps little
  constexpr auto kBlocks = static_cast<unsigned>(kBytes / sizeof(float4) / kThreads);
  const TestStream stream;
  const TestArray<char> a(kBytes), b(kBytes), c(kBytes);
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
