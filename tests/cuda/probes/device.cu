// Which GPU it is, and what its processes take of its memory: E12, E14, E15.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

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

}  // namespace cputrain::cuda::probes
