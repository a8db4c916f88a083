#include "emulated/shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <string>

#include "emulated/emulator.h"
#include "emulated/fault.h"
#include "emulated/memory.h"
#include "emulated/traffic.h"

namespace cputrain::emulated {
namespace {

/// What Cell::write says besides stamps.
enum : std::uint64_t { kNothing = 0, kFresh = 1, kWritten = 2 };

/// A stamp is epoch << 28 | epoch of the warp (16 bits) << 12 | who. An epoch begins with each
/// launch, block and __syncthreads.
constexpr int kEpochShift = 28, kWarpShift = 12;
constexpr std::uint64_t kWhoMask = 0xfff, kWarpMask = 0xffff;
/// Who: a thread, or some threads of a warp (kWarp + its number), or one of these.
constexpr std::uint64_t kWarp = kMostThreads, kCopying = 2045, kAtomic = 2046, kMany = 2047;
constexpr int kWordShift = 2;
constexpr std::size_t kWord = 1 << kWordShift;

struct Clock {
  std::uint64_t now = std::uint64_t{1} << kEpochShift, launch_first = 0,
                block_first = 0;          ///< epochs << kEpochShift
  std::array<std::uint64_t, 32> warps{};  ///< epochs of warps
};
Clock clock_;
constinit Shadow global_, shared_;

void next_epoch() { clock_.now += std::uint64_t{1} << kEpochShift; }

std::uint64_t stamp(std::uint64_t who, unsigned warp) {
  return clock_.now | (clock_.warps[warp] & kWarpMask) << kWarpShift | who;
}

std::uint64_t who_of(std::uint64_t stamp) { return stamp & kWhoMask; }
std::uint64_t warp_of(std::uint64_t who) { return who >= kWarp ? who - kWarp : who / 32; }

/// An access that is being checked.
struct Access {
  Shadow& shadow;
  const std::byte* address;
  const void* pc;
  std::uint64_t mine;
  std::uint64_t who, warp;
};

/// Whether an earlier access and one of this thread now are not ordered.
bool unordered(const Access& a, std::uint64_t earlier) {
  if (earlier < clock_.launch_first) return false;
  if (earlier < clock_.block_first) return !a.shadow.shared;  // another block's
  if (earlier < clock_.now) return false;                     // before a __syncthreads
  const std::uint64_t who = who_of(earlier);
  if (who == a.who) return false;
  if (who >= kCopying || warp_of(who) != a.warp) return true;
  return (earlier >> kWarpShift & kWarpMask) == (a.mine >> kWarpShift & kWarpMask);
}

std::string who_text(std::uint64_t stamp) {
  const std::uint64_t who = who_of(stamp);
  if (stamp < clock_.block_first) return "another block";
  if (who == kMany) return "threads of several warps";
  if (who == kAtomic) return "an atomic operation";
  if (who >= kWarp) return "threads of warp " + std::to_string(who - kWarp);
  return "thread " + std::to_string(who) + " of the block";
}

[[noreturn]] void complain(const Access& a, std::size_t byte, const std::string& what,
                           const std::string& rest = {}) {
  const std::byte* p = a.address + byte;
  const std::string where =
      a.shadow.shared ? describe_shared(a.shadow.offset(p)) : describe_address(p);
  kernel_fault(what + ": " + this_thread_text() + ", " + where + rest, a.pc);
}

Access access(Shadow& shadow, const void* p, const void* pc) {
  const Thread& self = *now.self;
  return {shadow,      static_cast<const std::byte*>(p),
          pc,          stamp(self.number, self.warp),
          self.number, self.warp};
}

// --- Pages.

std::size_t cells_of(const ShadowPage& page) {
  return page.kind == ShadowPage::bytes ? kPageBytes : kPageBytes / kWord;
}

void give_words(ShadowPage& page) {
  const std::uint64_t write = page.kind == ShadowPage::nothing ? kNothing
                              : page.kind == ShadowPage::fresh ? kFresh
                                                               : kWritten;
  delete[] page.cells;
  page.kind = ShadowPage::words;
  page.cells = new Cell[cells_of(page)];
  std::fill_n(page.cells, cells_of(page), Cell{write, 0});
}

void give_bytes(ShadowPage& page) {
  if (page.kind == ShadowPage::bytes) return;
  if (page.kind != ShadowPage::words) give_words(page);
  const Cell* words = page.cells;
  page.kind = ShadowPage::bytes;
  page.cells = new Cell[cells_of(page)];
  for (std::size_t i = 0; i < kPageBytes; ++i) page.cells[i] = words[i / kWord];
  delete[] words;
}

void make_whole(ShadowPage& page, ShadowPage::Kind kind) {
  delete[] page.cells;
  page.cells = nullptr;
  page.kind = kind;
}

/// Makes the page fine enough for an access of it; a cell stands for 1 << (what it returns) bytes.
int prepare(ShadowPage& page, std::size_t offset, std::size_t bytes) {
  if (page.kind < ShadowPage::words) give_words(page);
  if (page.kind == ShadowPage::words) {
    if ((offset | bytes) % kWord == 0) return kWordShift;
    give_bytes(page);
  }
  return 0;
}

/// Calls f(page, offset in it, bytes of it, bytes before) for each page of a range.
template <class F>
void for_pages(const Shadow& shadow, std::size_t offset, std::size_t bytes, const F& f) {
  for (std::size_t before = 0; before < bytes;) {
    const std::size_t in_page = (offset + before) % kPageBytes;
    const std::size_t here = std::min(bytes - before, kPageBytes - in_page);
    f(shadow.pages[(offset + before) / kPageBytes], in_page, here, before);
    before += here;
  }
}

void set_state(Shadow& shadow, std::size_t offset, std::size_t bytes, ShadowPage::Kind kind,
               std::uint64_t write) {
  if (!shadow.pages) return;
  for_pages(shadow, offset, bytes,
            [&](ShadowPage& page, std::size_t in_page, std::size_t here, std::size_t) {
              if (here == kPageBytes) return make_whole(page, kind);
              const int shift = prepare(page, in_page, here);
              std::fill_n(page.cells + (in_page >> shift), here >> shift, Cell{write, 0});
            });
}

// --- Accesses.

void read_cell(const Access& a, Cell& cell, std::size_t byte) {
  const std::uint64_t write = cell.write;
  if (write < clock_.launch_first || (a.shadow.shared && write < clock_.block_first)) {
    if (a.shadow.shared || write == kFresh) complain(a, byte, "read of memory nobody wrote");
    if (write == kNothing) complain(a, byte, "out of bounds read");
  } else if (who_of(write) == kCopying) {
    complain(a, byte, "cp.async is still writing what is read");
  } else if (unordered(a, write)) {
    complain(a, byte, "race: reads what was written without a barrier between",
             ", written by " + who_text(write));
  }
  const std::uint64_t read = cell.read;
  if (read == a.mine) return;
  if (read < clock_.now) {
    // A read of another block stays, so that a write of any block is found.
    const bool keep = !a.shadow.shared && read >= clock_.launch_first && read < clock_.block_first;
    if (!keep) cell.read = a.mine;
    return;
  }
  const std::uint64_t who = who_of(read);
  if (who == a.who) {
    cell.read = a.mine;
  } else if (who == kMany || warp_of(who) != a.warp) {
    cell.read = stamp(kMany, static_cast<unsigned>(a.warp));
  } else {
    const bool together = read >> kWarpShift == a.mine >> kWarpShift;
    cell.read = together ? stamp(kWarp + a.warp, static_cast<unsigned>(a.warp)) : a.mine;
  }
}

void write_cell(const Access& a, Cell& cell, std::size_t byte) {
  const std::uint64_t write = cell.write;
  if (write == kNothing && !a.shadow.shared) complain(a, byte, "out of bounds write");
  if (write >= clock_.block_first && who_of(write) == kCopying) {
    complain(a, byte, "cp.async is still writing what is written");
  }
  if (unordered(a, write)) {
    complain(a, byte, "race: two writes without a barrier between",
             ", the other by " + who_text(write));
  }
  if (unordered(a, cell.read)) {
    complain(a, byte, "race: writes what was read without a barrier between",
             ", read by " + who_text(cell.read));
  }
  cell.write = a.mine;
}

void atomic_cell(const Access& a, Cell& cell, std::size_t byte) {
  const bool both = cell.write >= clock_.launch_first && who_of(cell.write) == kAtomic;
  if (cell.write < clock_.launch_first || both) {
    if (cell.write == kNothing) complain(a, byte, "out of bounds atomic operation");
    if (cell.write == kFresh) complain(a, byte, "atomic operation on memory nobody wrote");
  } else if (unordered(a, cell.write)) {
    complain(a, byte, "race: atomic and plain access", ", written by " + who_text(cell.write));
  }
  if (unordered(a, cell.read)) {
    complain(a, byte, "race: atomic and plain access", ", read by " + who_text(cell.read));
  }
  cell.write = stamp(kAtomic, static_cast<unsigned>(a.warp));
}

template <class CellCheck>
void check_cells(Shadow& shadow, const void* p, std::size_t bytes, const void* pc,
                 const CellCheck& check) {
  const Access a = access(shadow, p, pc);
  for_pages(shadow, shadow.offset(p), bytes,
            [&](ShadowPage& page, std::size_t in_page, std::size_t here, std::size_t before) {
              const int shift = prepare(page, in_page, here);
              Cell* cells = page.cells + (in_page >> shift);
              for (std::size_t i = 0; i < here >> shift; ++i) {
                check(a, cells[i], before + (i << shift));
              }
            });
}

/// The shadow that holds an address; none for what a kernel may touch otherwise. Most accesses are
/// to the thread's own stack, where the compiler keeps what registers would hold.
Shadow* shadow_of(const void* p, std::size_t bytes, bool writes, const void* pc) {
  if (stacks.hold(p)) {
    if (stacks.stack_of(p) == now.self->stack) return nullptr;
    kernel_fault(std::string(writes ? "writes" : "reads") +
                     " a local variable of another thread: " + this_thread_text(),
                 pc);
  }
  if (global_.holds(p)) return &global_;
  if (shared_.holds(p)) {
    const std::size_t offset = shared_.offset(p);
    if (in_shared_variables(offset, bytes)) return &shared_;
    const Access a = access(shared_, p, pc);
    std::size_t byte = 0;
    while (byte + 1 < bytes && in_shared_variables(offset + byte, 1)) ++byte;
    complain(a, byte, writes ? "out of bounds write" : "out of bounds read");
  }
  if (!writes && is_harmless(p)) return nullptr;
  kernel_fault(std::string(writes ? "write" : "read") + " of host memory: " + this_thread_text() +
                   ", " + describe_address(p),
               pc);
}

/// Whether the caller runs on the stack of a checked kernel's thread.
bool in_checked_kernel() { return stacks.hold(__builtin_frame_address(0)) && shared_.pages; }

}  // namespace

Shadow make_shadow(const std::byte* base, std::size_t size, bool shared) {
  Shadow s{base, size, nullptr, shared};
  if (!kernels_are_checked()) return s;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const std::size_t pages = (size + kPageBytes - 1) / kPageBytes;
  void* p = mmap(nullptr, pages * sizeof(ShadowPage), PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (p == MAP_FAILED) fail(ExitCode::internal, "no address space for checks of memory");
  s.pages = static_cast<ShadowPage*>(p);  // pages of zeros: `nothing`
  return s;
}

Shadow& global_shadow(const std::byte* base, std::size_t size) {
  if (!global_.base) global_ = make_shadow(base, size, false);
  return global_;
}
Shadow& shared_shadow() { return shared_; }

void shadow_of_array(Shadow& shadow, std::size_t offset, std::size_t bytes) {
  set_state(shadow, offset, bytes, ShadowPage::fresh, kFresh);
}
void shadow_without_array(Shadow& shadow, std::size_t offset, std::size_t bytes) {
  set_state(shadow, offset, bytes, ShadowPage::nothing, kNothing);
}
void shadow_written(Shadow& shadow, std::size_t offset, std::size_t bytes) {
  set_state(shadow, offset, bytes, ShadowPage::written, kWritten);
}

void shadow_of_words(Shadow& shadow) {
  if (!shadow.pages) return;
  for (std::size_t i = 0; i < shadow.size / kPageBytes; ++i) {
    if (shadow.pages[i].kind == ShadowPage::bytes) make_whole(shadow.pages[i], ShadowPage::nothing);
  }
}

std::size_t first_unwritten(const Shadow& shadow, std::size_t offset, std::size_t bytes) {
  if (!shadow.pages) return bytes;
  std::size_t found = bytes;
  for_pages(shadow, offset, bytes,
            [&](ShadowPage& page, std::size_t in_page, std::size_t here, std::size_t before) {
              if (found < bytes || page.kind == ShadowPage::written) return;
              if (page.kind < ShadowPage::words) {
                found = before;
                return;
              }
              const std::size_t size = page.kind == ShadowPage::words ? kWord : 1;
              for (std::size_t i = 0; i < here; ++i) {
                if (page.cells[(in_page + i) / size].write >= kWritten) continue;
                found = before + i;
                return;
              }
            });
  return found;
}

void clock_launch() {
  next_epoch();
  clock_.launch_first = clock_.block_first = clock_.now;
}
void clock_block() {
  next_epoch();
  clock_.block_first = clock_.now;
  clock_.warps.fill(0);
}
void clock_barrier() { next_epoch(); }
void clock_warp(unsigned warp) { ++clock_.warps[warp]; }

void check_read(const void* p, std::size_t bytes, const void* pc) {
  if (!in_checked_kernel()) return;
  Shadow* const s = shadow_of(p, bytes, false, pc);
  if (!s) return;
  check_cells(*s, p, bytes, pc, read_cell);
  if (!s->shared) count_read(s->offset(p), bytes);
}

void check_write(const void* p, std::size_t bytes, const void* pc) {
  if (!in_checked_kernel()) return;
  Shadow* const s = shadow_of(p, bytes, true, pc);
  if (!s) return;
  check_cells(*s, p, bytes, pc, write_cell);
  if (!s->shared) count_write(s->offset(p), bytes);
}

void check_atomic(const void* p, std::size_t bytes, const void* pc) {
  if (!in_checked_kernel()) return;
  Shadow* const s = shadow_of(p, bytes, true, pc);
  if (!s) return;
  check_cells(*s, p, bytes, pc, atomic_cell);
  if (s->shared) return;
  count_read(s->offset(p), bytes);
  count_write(s->offset(p), bytes);
}

void check_copy_begins(const void* dst, std::size_t bytes) {
  check_write(dst, bytes, nullptr);
  if (!shared_.pages) return;
  check_cells(shared_, dst, bytes, nullptr, [](const Access& a, Cell& cell, std::size_t) {
    cell.write = stamp(kCopying, static_cast<unsigned>(a.warp));
  });
}

void check_copy_ends(const void* dst, std::size_t bytes) {
  if (!shared_.pages) return;
  check_cells(shared_, dst, bytes, nullptr, [](const Access& a, Cell& cell, std::size_t byte) {
    if (unordered(a, cell.read)) {
      complain(a, byte, "race: cp.async writes what was read without a barrier between",
               ", read by " + who_text(cell.read));
    }
    cell.write = a.mine;
  });
}

}  // namespace cputrain::emulated
