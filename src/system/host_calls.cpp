#include "system/host_calls.h"

#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>

#include "core/error.h"

namespace cputrain::system {
namespace {

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::span<std::byte> map_pages(std::size_t bytes, bool sparsely) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | (sparsely ? MAP_NORESERVE : 0), -1, 0);
  if (start == MAP_FAILED) {
    fail(ExitCode::internal, "no memory for " + std::to_string(bytes >> 20) + " MiB (" +
                                 std::generic_category().message(errno) +
                                 "); try fewer ranks on this machine or smaller images");
  }
  // A hint: without huge pages everything still works, so a refusal is no error.
  if (bytes >= kHugePage) madvise(start, bytes, sparsely ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  return {static_cast<std::byte*>(start), bytes};
}

void unmap_pages(std::span<std::byte> pages) { munmap(pages.data(), pages.size()); }

/// Ready before any other global is made.
constinit HostCalls calls{monotonic_seconds, map_pages, unmap_pages};

}  // namespace

const HostCalls& host_calls() { return calls; }

void set_host_calls(const HostCalls& others) { calls = others; }

}  // namespace cputrain::system
