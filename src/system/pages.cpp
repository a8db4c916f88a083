#include "system/pages.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace cputrain::system {
namespace {
constexpr std::size_t kHugePage = std::size_t{2} << 20;
}

void return_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(kKeptFree));
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(kKeptFree));
}

Pages::Pages(std::size_t bytes, Touched touched) {
  if (bytes == 0) return;  // the kernel refuses to map nothing
  const bool sparse = touched == Touched::sparsely;
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | (sparse ? MAP_NORESERVE : 0), -1, 0);
  if (start == MAP_FAILED) {
    fail(ExitCode::internal, "no memory for " + std::to_string(bytes >> 20) + " MiB (" +
                                 std::generic_category().message(errno) +
                                 "); try fewer ranks on this machine or smaller images");
  }
  // A hint: without huge pages everything still works, so a refusal is no error.
  if (bytes >= kHugePage) madvise(start, bytes, sparse ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  bytes_ = {static_cast<std::byte*>(start), bytes};
}

Pages::~Pages() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace cputrain::system
