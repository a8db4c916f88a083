#include "emulated/shared_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

#include "emulated/emulator.h"
#include "emulated/fault.h"
#include "emulated/settings.h"
#include "emulated/shadow.h"

namespace cputrain::emulated {
namespace {

/// More than any GPU has, and room for the gaps.
constexpr std::size_t kArea = std::size_t{512} << 10;
constexpr std::size_t kGap = 128;
constexpr std::size_t kMostStatic = std::size_t{48} << 10;  ///< of shared<T>(); CUDA's limit

struct Variable {
  const void* key;
  std::size_t begin, bytes;
};

struct SharedMemory {
  std::byte* base = nullptr;
  std::size_t dynamic_bytes = 0;
  std::vector<Variable> variables;
  std::size_t end = 0;     ///< of what the block has
  std::size_t wanted = 0;  ///< bytes of the variables
};
constinit SharedMemory memory_;

void make_memory() {
  if (memory_.base) return;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* p = mmap(nullptr, kArea + kPageBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (p == MAP_FAILED) fail(ExitCode::internal, "no memory for emulated shared memory");
  memory_.base = static_cast<std::byte*>(p);
  mprotect(memory_.base + kArea, kPageBytes, PROT_NONE);
  shared_shadow() = make_shadow(memory_.base, kArea, true);
}

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

}  // namespace

void begin_shared_of_launch(std::size_t dynamic_bytes) {
  make_memory();
  memory_.dynamic_bytes = dynamic_bytes;
  shadow_of_words(shared_shadow());
}

void begin_shared_of_block() {
  SharedMemory& m = memory_;
  m.end = m.dynamic_bytes;
  m.wanted = 0;
  m.variables.clear();
  std::memset(m.base, 0xff, m.dynamic_bytes);
}

void* shared_storage(const void* key, std::size_t bytes, std::size_t alignment) {
  SharedMemory& m = memory_;
  for (const Variable& v : m.variables) {
    if (v.key == key) return m.base + v.begin;
  }
  m.wanted += bytes;
  if (m.wanted > kMostStatic || m.wanted + m.dynamic_bytes > limits().shared_memory) {
    kernel_fault("too much shared memory: variables of " + std::to_string(m.wanted) +
                 " bytes besides " + std::to_string(m.dynamic_bytes) + " of the launch");
  }
  const std::size_t begin = round_up(m.end + (m.end ? kGap : 0), alignment);
  if (begin + bytes > kArea) kernel_fault("too many variables in shared memory");
  m.end = begin + bytes;
  m.variables.push_back({key, begin, bytes});
  std::memset(m.base + begin, 0xff, bytes);
  return m.base + begin;
}

void* dynamic_storage() { return memory_.base; }

bool is_shared_memory(const void* p) { return shared_shadow().holds(p); }

bool in_shared_variables(std::size_t offset, std::size_t bytes) {
  const SharedMemory& m = memory_;
  if (offset + bytes <= m.dynamic_bytes) return true;
  for (const Variable& v : m.variables) {
    if (offset >= v.begin && offset + bytes <= v.begin + v.bytes) return true;
  }
  return false;
}

std::string describe_shared(std::size_t offset) {
  const SharedMemory& m = memory_;
  std::string of = "the launch's shared memory";
  std::size_t begin = 0, bytes = m.dynamic_bytes;
  for (const Variable& v : m.variables) {
    if (offset < v.begin && bytes) break;  // behind the one before
    of = "a shared variable";
    begin = v.begin;
    bytes = v.bytes;
  }
  return "byte " + std::to_string(static_cast<long>(offset) - static_cast<long>(begin)) + " of " +
         of + ", which has " + std::to_string(bytes) + " bytes";
}

}  // namespace cputrain::emulated
