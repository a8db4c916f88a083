#include <cstring>

#include "compute/memory.h"
#include "system/pages.h"

namespace cputrain::compute {
namespace {

class HostMemory final : public Memory {
 public:
  std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes) override {
    return std::make_unique<system::Pages>(bytes);
  }
  void read(const void* src, std::span<std::byte> dst) override {
    copy(src, dst.data(), dst.size());
  }
  void write(std::span<const std::byte> src, void* dst) override {
    copy(src.data(), dst, src.size());
  }
  void copy(const void* src, void* dst, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(dst, src, bytes);
  }
  bool is_host() const override { return true; }
  std::optional<std::size_t> available() const override { return std::nullopt; }
};

}  // namespace

std::unique_ptr<system::SharedBlock> Memory::staging(std::size_t bytes) {
  return host_memory().allocate(bytes);
}

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace cputrain::compute
