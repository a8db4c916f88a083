#include "backends/cuda/device/device.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "emulated/emulator.h"
#include "emulated/fault.h"
#include "emulated/memory.h"
#include "emulated/run_state.h"
#include "emulated/settings.h"
#include "emulated/signals.h"
#include "emulated/streams.h"

/// backends/cuda/device/device.h for the emulated device.
namespace cputrain::cuda {

using emulated::Counts;
using emulated::devices;

namespace {
thread_local int device_of_thread = 0;
}

int current_device();
int current_device() { return device_of_thread; }

std::string why_no_device() { return {}; }
int device_count() { return emulated::settings().devices; }

DeviceProperties device_properties(int device) {
  const emulated::GpuLimits& gpu = emulated::limits();
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  DeviceProperties p;
  const char* kernels = emulated::settings().runs_kernels ? "run on the CPU" : "are skipped";
  p.name = std::string("emulated ") + gpu.name + " (kernels " + kernels + ")";
  p.identity = std::string(host) + " emulated " + std::to_string(device);
  p.major = gpu.major;
  p.minor = gpu.minor;
  p.multiprocessors = gpu.multiprocessors;
  p.memory = emulated::memory_of_device();
  p.shared_memory = gpu.shared_memory;
  p.runtime = "emulated";
  p.emulated = true;
  return p;
}

void use_device(int device) {
  if (device < 0 || device >= device_count()) {
    fail(ExitCode::internal, "there is no device " + std::to_string(device));
  }
  device_of_thread = device;
}

std::size_t free_memory() {
  const auto lock = held(devices());
  const std::size_t all = emulated::memory_of_device();
  return all - std::min(all, emulated::used_memory(device_of_thread));
}

DeviceBlock::DeviceBlock(std::size_t bytes, const char* name) : size_(bytes) {
  auto& d = devices();
  const auto lock = held(d);
  d.check_may_wait("an allocation");
  emulated::handle_signals();
  data_.reset(emulated::allocate(bytes, name, device_of_thread));
}

namespace {

/// As cudaFree does, waits for everything. What goes wrong is thrown at the next call.
void finish_work() {
  auto& d = devices();
  try {
    d.check_may_wait("freeing memory");
    d.run_all();
  } catch (const Error&) {
  }
}

}  // namespace

void DeviceBlock::Free::operator()(void* data) const noexcept {
  const std::lock_guard lock(devices().mutex);
  finish_work();
  emulated::release(data);
}

PinnedBlock::PinnedBlock(std::size_t bytes) : size_(bytes) {
  auto& d = devices();
  const auto lock = held(d);
  d.check_may_wait("an allocation");
  constexpr std::size_t kPage = emulated::kPageBytes;
  void* p =
      std::aligned_alloc(kPage, (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage);
  if (!p) fail(ExitCode::internal, "no pinned memory of " + std::to_string(bytes) + " bytes");
  data_.reset(static_cast<std::byte*>(p));
  std::memset(p, 0xff, bytes);
  d.pinned.emplace_back(data_.get(), bytes);
}

void PinnedBlock::Free::operator()(std::byte* data) const noexcept {
  auto& d = devices();
  const std::lock_guard lock(d.mutex);
  finish_work();
  std::erase_if(d.pinned, [&](const auto& block) { return block.first == data; });
  std::free(data);
}

namespace {

void copy_and_count(void* dst, const void* src, std::size_t bytes) {
  Counts& counts = devices().counts;
  const bool from_device = emulated::is_device_memory(src);
  (!emulated::is_device_memory(dst) ? counts.to_host
   : from_device                    ? counts.on_device
                                    : counts.to_device)
      .add(bytes);
  emulated::copy_now(dst, src, bytes);
}

}  // namespace

void copy_async(void* dst, const void* src, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  auto& d = devices();
  const auto lock = held(d);
  const auto pageable = [&](const void* p) {
    return !emulated::is_device_memory(p) && !d.is_pinned(p, bytes);
  };
  if (stream->capture && (pageable(src) || pageable(dst))) {
    fail(ExitCode::internal, "a copy from or to pageable memory cannot be captured");
  }
  if (pageable(src)) {
    // CUDA stages it before the call returns; it arrives later.
    const auto* begin = static_cast<const std::byte*>(src);
    auto staged = std::make_shared<std::vector<std::byte>>(begin, begin + bytes);
    d.put(stream, [=] { copy_and_count(dst, staged->data(), bytes); });
  } else {
    d.put(stream, [=] { copy_and_count(dst, src, bytes); });
  }
  if (pageable(dst)) {
    d.check_may_wait("a copy to pageable memory");
    ++d.counts.copy_waits;
    d.run_until(stream->last);
  }
}

void clear_async(void* dst, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  auto& d = devices();
  const auto lock = held(d);
  d.put(stream, [&d, dst, bytes] {
    d.counts.cleared.add(bytes);
    emulated::clear_now(dst, bytes);
  });
}

/// How much there is is checked at the launch.
void reserve_shared_memory(const char*, const void*, std::size_t) {}

void name_range(const char* name) {
  auto& d = devices();
  const std::lock_guard lock(d.mutex);
  ++d.counts.ranges[name];
}

void check_launch(const char*) { const auto lock = held(devices()); }

}  // namespace cputrain::cuda
