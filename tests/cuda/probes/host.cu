// Between host and device: rates of copies, and how soon a waiting host goes on: E11.
#include <algorithm>
#include <cstring>
#include <vector>

#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

constexpr std::size_t kBytes = std::size_t{64} << 20;

__global__ void busy_kernel(unsigned long long duration) { spin(duration); }

class Pinned {
 public:
  Pinned() {
    check(cudaHostAlloc(&data_, kBytes, cudaHostAllocDefault), "cudaHostAlloc");
    std::memset(data_, 1, kBytes);
  }
  ~Pinned() { static_cast<void>(cudaFreeHost(data_)); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

void say_rate(const char* name, double seconds, std::optional<double> assumed, const char* what) {
  const double rate = 1e-9 * kBytes / seconds;
  say({.name = name,
       .question = "E11",
       .value = rate,
       .unit = "GB/s",
       .verdict = verdict_of(rate, assumed, 0.25),
       .text = words("%s: %.1f GB/s", what, rate)});
}

void copy(void* dst, const void* src, const TestStream& stream) {
  check(cudaMemcpyAsync(dst, src, kBytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

/// The best of a few, since the first one meets pages that nobody touched.
double seconds_of_host_copy(void* dst, const void* src) {
  double least = 1;
  for (int i = 0; i < 4; ++i) {
    const Clock::time_point start = Clock::now();
    std::memcpy(dst, src, kBytes);
    least = std::min(least, seconds_since(start));
  }
  return least;
}

/// Both ways at once, in two streams.
double seconds_both_ways(const Pinned& up, const Pinned& down, char* there, char* back) {
  const TestStream one, other;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < 5; ++i) {
    copy(there, up.data(), one);
    copy(down.data(), back, other);
  }
  one.wait("copies up");
  other.wait("copies down");
  return seconds_since(start) / 5;
}

/// Copies up while kernels keep every multiprocessor busy.
double seconds_beside_kernels(const Pinned& up, char* there) {
  const TestStream compute, stream;
  busy_kernel<<<2 * multiprocessors(), 256, 0, compute>>>(30'000'000);
  const double seconds = seconds_each(stream, 5, [&] { copy(there, up.data(), stream); });
  compute.wait("a kernel beside copies");
  return seconds;
}

/// Microseconds after the end of 200 us of work until the host knows.
double lateness(unsigned flags) {
  constexpr int kTries = 50;
  constexpr unsigned long long kWork = 200'000;
  const TestStream stream;
  TestEvent event(flags);
  busy_kernel<<<1, 1, 0, stream>>>(kWork);
  stream.wait("a kernel");
  double sum = 0;
  for (int i = 0; i < kTries; ++i) {
    busy_kernel<<<1, 1, 0, stream>>>(kWork);
    event.record(stream);
    const Clock::time_point start = Clock::now();
    event.wait();
    sum += seconds_since(start);
  }
  return 1e6 * sum / kTries - 1e-3 * static_cast<double>(kWork);
}

/// Microseconds to fetch four bytes that lie ready, such as a loss.
double small_copy() {
  constexpr int kTries = 100;
  const TestStream stream;
  const TestArray<float> there(1);
  const Pinned here;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kTries; ++i) {
    check(cudaMemcpyAsync(here.data(), there.data(), 4, cudaMemcpyDefault, stream),
          "cudaMemcpyAsync");
    stream.wait("four bytes");
  }
  return 1e6 * seconds_since(start) / kTries;
}

}  // namespace

void ask_host_copies() {
  const TestStream stream;
  const TestArray<char> there(kBytes), back(kBytes);
  const Pinned pinned, other;
  std::vector<char> pageable(kBytes, 1);
  const auto seconds = [&](void* dst, const void* src) {
    return seconds_each(stream, 5, [&] { copy(dst, src, stream); });
  };
  say_rate("host-memcpy", seconds_of_host_copy(pinned.data(), pageable.data()), 6.0,
           "one thread, pageable to pinned memory");
  say_rate("pinned-to-device", seconds(there.data(), pinned.data()), 55.0, "pinned to device");
  say_rate("device-to-pinned", seconds(pinned.data(), there.data()), 55.0, "device to pinned");
  say_rate("pageable-to-device", seconds(there.data(), pageable.data()), {}, "pageable to device");
  say_rate("device-to-pageable", seconds(pageable.data(), there.data()), {}, "device to pageable");
  say_rate("pinned-both-ways", seconds_both_ways(pinned, other, there.data(), back.data()), {},
           "pinned, both ways at once, each way");
  say_rate("pinned-beside-kernels", seconds_beside_kernels(pinned, there.data()), {},
           "pinned to device beside kernels");
}

void ask_waiting() {
  const double spinning = lateness(cudaEventDisableTiming);
  const double blocking = lateness(cudaEventDisableTiming | cudaEventBlockingSync);
  say({.name = "wake-up-spinning",
       .question = "E11",
       .value = spinning,
       .unit = "us",
       .text = words("a host that polls goes on %.1f us late, launch included", spinning)});
  say({.name = "wake-up-blocking",
       .question = "E11",
       .value = blocking,
       .unit = "us",
       .verdict = verdict_of(blocking >= 20 && blocking <= 150),
       .text =
           words("a host that sleeps goes on %.1f us late, launch included (assumed: 20 to 150)",
                 blocking)});
  const double small = small_copy();
  say({.name = "small-copy",
       .question = "E11",
       .value = small,
       .unit = "us",
       .text = words("fetching 4 bytes takes the host %.1f us", small)});
}

}  // namespace cputrain::cuda::probes
