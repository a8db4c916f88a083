#include "emulated/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "emulated/address_range.h"
#include "emulated/fault.h"
#include "emulated/fibers.h"
#include "emulated/settings.h"
#include "emulated/shadow.h"
#include "system/limits/process_limits.h"

namespace cputrain::emulated {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kNamesOfFreed = 4096;  ///< that are kept for reports

struct Array {
  std::size_t bytes;
  std::size_t begin, mapped;  ///< its pages
  std::string name;
  int device;
};
using Arrays = std::map<std::size_t, Array>;  ///< by where the data begin, in bytes of the range

/// What is not an array's is mapped to an empty file, so that it cannot be touched even while the
/// range is unlocked, which is a single call for all arrays.
struct Range {
  std::byte* base;
  std::size_t shift;  ///< of base in the mapping of the file
  int empty_file;
  Arrays live, freed;
  AddressRange addresses{kMemoryRange};
  std::size_t end = 0;  ///< of what was ever used
  std::map<int, std::size_t> used;
  int running = 0;        ///< scopes of work
  std::size_t waits = 0;  ///< of the host, in which work was done
  bool locked = true;
  std::mutex names;  ///< of `live` and `freed`, for the reports

  Range();
  void lock(bool on);
  void close(std::size_t begin, std::size_t bytes);
};

Range::Range() {
  empty_file = memfd_create("nothing", MFD_CLOEXEC);
  void* p = mmap(nullptr, kMemoryRange + AddressRange::kHuge, PROT_READ | PROT_WRITE, MAP_SHARED,
                 empty_file, 0);
  if (empty_file < 0 || p == MAP_FAILED) {
    fail(ExitCode::internal,
         "no address space for the memory of the emulated device (64 GiB); see ulimit -v");
  }
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  shift = (AddressRange::kHuge - address % AddressRange::kHuge) % AddressRange::kHuge;
  base = static_cast<std::byte*>(p) + shift;
}

void Range::lock(bool on) {
  if (locked == on) return;
  locked = on;
  if (end) mprotect(base, end, on ? PROT_NONE : PROT_READ | PROT_WRITE);
}

/// The file's bytes are those that lay there at first, so that the kernel sees one mapping again:
/// every call that locks walks through all of them.
void Range::close(std::size_t begin, std::size_t bytes) {
  mmap(base + begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty_file,
       static_cast<off_t>(begin + shift));
}

Range& range() {
  static Range& one = *new Range;  // never ends: other objects of the program may end later
  return one;
}

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// A share of the host's memory, as the launcher has told of the other ranks of the node.
std::size_t memory_to_spare() {
  static const std::size_t spare = [] {
    const char* told = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    const std::size_t ranks = told ? std::max(1ul, std::strtoul(told, nullptr, 10)) : 1;
    const std::size_t all = system::available_memory().value_or(std::size_t{8} << 30);
    return all / (kernels_are_checked() ? 8 : 2) / ranks;
  }();
  return spare;
}

/// They do not overlap each other: one at most begins before the range and ends in it.
void forget_freed(Range& r, std::size_t begin, std::size_t end) {
  auto i = r.freed.lower_bound(begin);
  if (i != r.freed.begin()) --i;
  while (i != r.freed.end() && i->second.begin < end) {
    i = begin < i->second.begin + i->second.mapped ? r.freed.erase(i) : std::next(i);
  }
}

/// The first array of the map whose data may hold the address or lie before it.
const Array* array_before(const Arrays& arrays, std::size_t offset) {
  auto after = arrays.upper_bound(offset);
  return after == arrays.begin() ? nullptr : &std::prev(after)->second;
}

}  // namespace

std::size_t memory_of_device() {
  if (settings().memory) return settings().memory;
  if (!settings().runs_kernels) return std::min(limits().memory, kMemoryRange / 2);
  return std::min(limits().memory, memory_to_spare());
}

std::size_t used_memory(int device) { return range().used[device]; }

void* allocate(std::size_t bytes, const char* name, int device) {
  Range& r = range();
  const std::size_t wanted = round_up(std::max<std::size_t>(bytes, 1), 16);
  const std::size_t mapped = round_up(wanted, kPageBytes);
  const std::size_t begin =
      r.used[device] + bytes <= memory_of_device() ? r.addresses.take(mapped) : 0;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (begin == 0 ||
      mmap(r.base + begin, mapped, PROT_READ | PROT_WRITE, kFlags, -1, 0) == MAP_FAILED) {
    fail(ExitCode::internal, "out of memory on the emulated device (\"" + std::string(name) +
                                 "\" needs " + std::to_string(bytes) + " bytes, " +
                                 std::to_string(r.used[device]) + " of " +
                                 std::to_string(memory_of_device()) + " are used)");
  }
  if (mapped >= AddressRange::kHuge) madvise(r.base + begin, mapped, MADV_HUGEPAGE);
  if (settings().runs_kernels) std::memset(r.base + begin, 0xff, mapped);
  if (r.locked) mprotect(r.base + begin, mapped, PROT_NONE);
  const std::size_t data = begin + (mapped - wanted) / kAlignment * kAlignment;
  const std::lock_guard lock(r.names);
  forget_freed(r, begin, begin + mapped);
  r.live[data] = {bytes, begin, mapped, name, device};
  r.used[device] += bytes;
  r.end = std::max(r.end, begin + mapped);
  shadow_of_array(global_shadow(r.base, kMemoryRange), data, bytes);
  if (!settings().runs_kernels) shadow_written(global_shadow(r.base, kMemoryRange), data, bytes);
  return r.base + data;
}

void release(void* p) {
  if (!p) return;
  Range& r = range();
  const auto found = r.live.find(static_cast<std::size_t>(static_cast<std::byte*>(p) - r.base));
  const Array array = found->second;
  shadow_without_array(global_shadow(r.base, kMemoryRange), array.begin, array.mapped);
  r.close(array.begin, array.mapped);
  r.addresses.give_back(array.begin);
  r.used[array.device] -= array.bytes;
  const std::lock_guard lock(r.names);
  if (r.freed.size() >= kNamesOfFreed) r.freed.erase(r.freed.begin());
  r.freed[found->first] = array;
  r.live.erase(found);
}

/// A lock walks through all pages, which is a third of some tests' time: all of the first waits are
/// followed by one, then few. What a host does wrong it does in every step, and a prime has no
/// factor in common with the waits of most steps, so each of their places has its turn.
constexpr std::size_t kAllLocked = 256, kOneIn = 17;

Unlocked::Unlocked() {
  Range& r = range();
  if (r.running++ == 0) r.lock(false);
}
Unlocked::~Unlocked() {
  Range& r = range();
  if (--r.running > 0) return;
  const std::size_t wait = r.waits++;
  if (wait < kAllLocked || wait % kOneIn == 0) r.lock(true);
}

void count_waits_anew() {
  range().waits = 0;
  range().lock(true);
}

bool is_device_memory(const void* p) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(p) - range().base) < kMemoryRange;
}

namespace {

/// Throws unless all bytes are an array's, and, where something is read, were written.
void check_range(const char* what, const void* p, std::size_t bytes, bool reads) {
  Range& r = range();
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - r.base);
  const Array* array = array_before(r.live, offset);
  const auto data = [&] { return std::prev(r.live.upper_bound(offset))->first; };
  if (!array || offset + bytes > data() + array->bytes) {
    const bool begins_inside = array && offset < data() + array->bytes;
    const std::size_t first = begins_inside ? data() + array->bytes : offset;
    throw Fault(std::string(what) + ": out of bounds " + (reads ? "read" : "write") + ", " +
                describe_address(r.base + first));
  }
  if (!reads) return;
  const std::size_t unwritten = first_unwritten(global_shadow(r.base, kMemoryRange), offset, bytes);
  if (unwritten < bytes) {
    throw Fault(std::string(what) + ": read of memory nobody wrote, " +
                describe_address(r.base + offset + unwritten));
  }
}

void note_written(const void* p, std::size_t bytes) {
  Range& r = range();
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - r.base);
  shadow_written(global_shadow(r.base, kMemoryRange), offset, bytes);
}

}  // namespace

void copy_now(void* dst, const void* src, std::size_t bytes) {
  const bool to_device = is_device_memory(dst);
  if (is_device_memory(src)) check_range("copy", src, bytes, true);
  if (to_device) check_range("copy", dst, bytes, false);
  std::memmove(dst, src, bytes);
  if (to_device) note_written(dst, bytes);
}

void clear_now(void* dst, std::size_t bytes) {
  if (!is_device_memory(dst)) throw Fault("clear: " + describe_address(dst));
  check_range("clear", dst, bytes, false);
  std::memset(dst, 0, bytes);
  note_written(dst, bytes);
}

std::string describe_address(const void* p) {
  char text[64];
  if (!is_device_memory(p)) {
    std::snprintf(text, sizeof text, "host address %p", p);
    return text;
  }
  Range& r = range();
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - r.base);
  const std::lock_guard lock(r.names);
  // The array whose pages hold the address, or else the one that ends before it.
  for (const Arrays* arrays : {&r.live, &r.freed}) {
    for (const auto& [data, array] : *arrays) {
      if (offset < array.begin || offset >= array.begin + array.mapped + kPageBytes) continue;
      const auto byte = static_cast<std::ptrdiff_t>(offset) - static_cast<std::ptrdiff_t>(data);
      return "byte " + std::to_string(byte) + " of \"" + array.name + "\", which has " +
             std::to_string(array.bytes) + " bytes" + (arrays == &r.freed ? " and was freed" : "");
    }
  }
  std::snprintf(text, sizeof text, "device address %p, where no array is", p);
  return text;
}

void report_touch_by_host(const void* p) {
  std::fprintf(stderr, "The host touches device memory: %s.\n", describe_address(p).c_str());
}

}  // namespace cputrain::emulated
