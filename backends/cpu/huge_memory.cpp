#include "backends/cpu/huge_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/error.h"

namespace cputrain::cpu {

void HugeMemoryDeleter::operator()(std::byte* data) const { munmap(data, bytes); }

HugeMemory allocate_huge(std::size_t bytes) {
  if (bytes == 0) return {nullptr, {0}};
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    fail(ExitCode::internal, "cannot get " + std::to_string(bytes >> 20) +
                                 " MB of memory for activations (" + std::strerror(errno) +
                                 "); try a smaller --micro-batch");
  }
  madvise(data, bytes, MADV_HUGEPAGE);  // a wish: without it everything works, a little slower
  return {static_cast<std::byte*>(data), {bytes}};
}

}  // namespace cputrain::cpu
