#include "backends/cpu/huge_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/error.h"

namespace cputrain::cpu {
namespace {

class HugePages final : public system::SharedBlock {
 public:
  explicit HugePages(std::size_t bytes) {
    if (bytes == 0) return;
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
      fail(ExitCode::internal, "cannot get " + std::to_string(bytes >> 20) +
                                   " MB of memory for activations (" + std::strerror(errno) +
                                   "); try a smaller --micro-batch");
    }
    madvise(data, bytes, MADV_HUGEPAGE);  // a wish: without it everything works, a little slower
    bytes_ = {static_cast<std::byte*>(data), bytes};
  }
  ~HugePages() override {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  }
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;

  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace

std::unique_ptr<system::SharedBlock> allocate_huge(std::size_t bytes) {
  return std::make_unique<HugePages>(bytes);
}

}  // namespace cputrain::cpu
