// The device as the host sees it: what it is, its memory, copies and waiting.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

// Which GPU it is, and what its processes take of its memory: E12, E14, E15.

std::string version_text(int version) {
  return words("%d.%d", version / 1000, version % 1000 / 10);
}

using Uuid = std::array<char, 16>;

int attribute(cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute");
  return value;
}

/// The driver's own word for who the device is, which knows parts of a GPU (MIG); none where it has
/// no such call.
std::optional<Uuid> uuid_of_driver() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion("cuDeviceGetUuid", &function, 11040, cudaEnableDefault,
                                         &found),
        "the driver's cuDeviceGetUuid");
#else
  check(cudaGetDriverEntryPoint("cuDeviceGetUuid", &function, cudaEnableDefault, &found),
        "the driver's cuDeviceGetUuid");
#endif
  if (!function) return std::nullopt;
  Uuid uuid{};
  if (reinterpret_cast<int (*)(void*, int)>(function)(uuid.data(), 0) != 0) return std::nullopt;
  return uuid;
}

void say_number(const char* name, double value, const char* unit, const std::string& text) {
  say({.name = name, .value = value, .unit = unit, .text = text});
}

void ask_versions() {
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  say({.name = "versions",
       .question = "E14",
       .verdict = verdict_of(driver >= CUDART_VERSION),
       .text = "built with CUDA " + version_text(CUDART_VERSION) + ", driver for " +
               version_text(driver)});
}

/// Answers are published, so they do not name the GPU.
void ask_identity(const cudaDeviceProp& p) {
  const std::optional<Uuid> driver = uuid_of_driver();
  const bool same = driver && std::equal(driver->begin(), driver->end(), p.uuid.bytes);
  say({.name = "uuid",
       .question = "E15",
       .verdict = verdict_of(same),
       .text = !driver ? "the driver does not say its own"
               : same  ? "runtime and driver agree"
                       : "runtime and driver disagree"});
}

std::size_t free_memory_now() {
  std::size_t free = 0, all = 0;
  check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  return free;
}

}  // namespace

std::string why_nothing_to_ask() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return count > 0 ? "" : "no CUDA device";
  if (status != cudaErrorInsufficientDriver) return cudaGetErrorString(status);
  return "no NVIDIA driver, or one older than CUDA " + version_text(CUDART_VERSION);
}

void ask_device() {
  const cudaDeviceProp p = properties_of_device();
  say({.name = "gpu",
       .text = words("%s, compute capability %d.%d, PCI %02x:%02x", p.name, p.major, p.minor,
                     p.pciBusID, p.pciDeviceID)});
  ask_versions();
  ask_identity(p);
  const int mode = attribute(cudaDevAttrComputeMode);
  say_number("compute-mode", mode, "",
             mode == cudaComputeModeDefault ? "any number of processes may use it"
                                            : "not for any number of processes");
  say_number("multiprocessors", p.multiProcessorCount, "",
             words("%d multiprocessors", p.multiProcessorCount));
  say_number("l2-cache", p.l2CacheSize, "bytes",
             words("%.1f MB of L2 cache", double(p.l2CacheSize) / (1 << 20)));
  say_number("memory", static_cast<double>(p.totalGlobalMem), "bytes",
             words("%.2f GB of memory, %.2f free", 1e-9 * double(p.totalGlobalMem),
                   1e-9 * double(free_memory_now())));
  say_number("shared-memory", static_cast<double>(p.sharedMemPerMultiprocessor), "bytes",
             words("%zu bytes of shared memory each multiprocessor, %zu a block may have",
                   p.sharedMemPerMultiprocessor, p.sharedMemPerBlockOptin));
  say_number(
      "highest-clock", 1e-3 * attribute(cudaDevAttrClockRate), "MHz",
      words("at most %.0f MHz, the memory %.0f MHz on a bus of %d bits; %d copy engines",
            1e-3 * attribute(cudaDevAttrClockRate), 1e-3 * attribute(cudaDevAttrMemoryClockRate),
            p.memoryBusWidth, p.asyncEngineCount));
}

void hold_context() {
  if (attribute(cudaDevAttrComputeMode) != cudaComputeModeDefault) {
    throw std::runtime_error("the GPU is for one process alone (its compute mode)");
  }
  check(cudaFree(nullptr), "a context");
  std::printf("ready\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}

void ask_contexts() {
  constexpr int kOthers = 3;
  std::size_t free = 0, all = 0;
  check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  std::vector<std::unique_ptr<Child>> others;
  std::vector<double> megabytes;
  const Clock::time_point until = Clock::now() + std::chrono::seconds(6);
  for (int i = 0; i < kOthers; ++i) {
    const std::size_t before = free_memory_now();
    others.push_back(std::make_unique<Child>(std::vector<std::string>{"--hold-context"}));
    std::string line;
    if (others.back()->read_line(line, until) != Child::Read::line || line != "ready") {
      throw std::runtime_error("another process makes no context on this device: " + line);
    }
    megabytes.push_back(1e-6 * (double(before) - double(free_memory_now())));
  }
  const double last = megabytes.back();
  say({.name = "context",
       .question = "E12",
       .value = last,
       .unit = "MB",
       .verdict = verdict_of(last, 500.0, 0.3),
       .text = words("of %.0f MB, %.0f were free to the first process; the next three took %.0f, "
                     "%.0f and %.0f MB",
                     1e-6 * double(all), 1e-6 * double(free), megabytes[0], megabytes[1],
                     megabytes[2])});
}

namespace {

// Between host and device: rates of copies, and how soon a waiting host goes on: E11.

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
