#include <cstdint>
#include <cstring>
#include <string>

#include "emulated/emulator.h"
#include "emulated/shadow.h"
#include "emulated/shared_memory.h"

/// cp.async: what is copied arrives when the thread waits for it, and no sooner.
namespace cputrain::emulated {
namespace {

constexpr std::size_t kBytes = 16;

void check_aligned(const void* p) {
  if (reinterpret_cast<std::uintptr_t>(p) % kBytes == 0) return;
  kernel_fault("misaligned access: cp.async needs 16 bytes, " + this_thread_text());
}

void arrive(const AsyncCopy& copy) {
  check_copy_ends(copy.dst, kBytes);
  if (copy.valid) {
    std::memcpy(copy.dst, copy.src, kBytes);
  } else {
    std::memset(copy.dst, 0, kBytes);
  }
}

}  // namespace

void begin_copy(void* dst, const void* src, bool valid, Place at) {
  Thread& self = *now.self;
  self.what = "cp.async";
  self.place = at;
  check_aligned(dst);
  check_aligned(src);
  if (!is_shared_memory(dst)) {
    kernel_fault("cp.async writes memory that is not shared: " + this_thread_text());
  }
  check_copy_begins(dst, kBytes);
  if (valid) check_read(src, kBytes, nullptr);
  std::memset(dst, 0xff, kBytes);  // what lay there may be overwritten from now on
  self.copies.push_back({dst, src, valid, self.group});
}

void commit_group() { ++now.self->group; }

void wait_for_groups(unsigned left, Place at) {
  Thread& self = *now.self;
  self.what = "cp.async.wait_group";
  self.place = at;
  std::erase_if(self.copies, [&](const AsyncCopy& copy) {
    if (copy.group + left >= self.group) return false;
    arrive(copy);
    return true;
  });
}

}  // namespace cputrain::emulated
