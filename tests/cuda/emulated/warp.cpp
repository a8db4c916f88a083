#include "emulated/warp.h"

#include <bit>
#include <string>

#include "emulated/shadow.h"
#include "emulated/shared_memory.h"

namespace cputrain::emulated {
namespace {

/// Calls f(lane) for each lane of a mask.
template <class F>
void for_lanes(std::uint32_t mask, const F& f) {
  for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
    f(static_cast<unsigned>(std::countr_zero(rest)));
  }
}

}  // namespace

void shuffle(std::uint32_t mask, const char* what, Place at, Shuffle& mine) {
  collective(mask, what, at, &mine, [](void** slots, std::uint32_t lanes) {
    for_lanes(lanes, [&](unsigned lane) {
      auto& s = *static_cast<Shuffle*>(slots[lane]);
      if (s.source > 31 || !(lanes >> s.source & 1)) {
        kernel_fault("shuffle: lane " + std::to_string(lane) + " reads lane " +
                     std::to_string(s.source) + ", which is not in the mask");
      }
      s.result = static_cast<const Shuffle*>(slots[s.source])->value;
    });
  });
}

unsigned vote(std::uint32_t mask, const char* what, Place at, bool yes) {
  struct Vote {
    bool yes;
    unsigned result;
  } mine{yes, 0};
  collective(mask, what, at, &mine, [](void** slots, std::uint32_t lanes) {
    unsigned result = 0;
    for_lanes(lanes, [&](unsigned lane) {
      if (static_cast<const Vote*>(slots[lane])->yes) result |= 1u << lane;
    });
    for_lanes(lanes, [&](unsigned lane) { static_cast<Vote*>(slots[lane])->result = result; });
  });
  return mine.result;
}

namespace {

template <class T>
T add(T* p, T value, const void* pc) {
  check_atomic(p, sizeof(T), pc);
  const T before = *p;
  *p = before + value;
  return before;
}

}  // namespace

int atomic_add(int* p, int value) { return add(p, value, __builtin_return_address(0)); }
unsigned atomic_add(unsigned* p, unsigned value) {
  return add(p, value, __builtin_return_address(0));
}
unsigned long long atomic_add(unsigned long long* p, unsigned long long value) {
  return add(p, value, __builtin_return_address(0));
}

void matrices_to_registers(unsigned (&r)[4], const void* row, bool transposed, Place at) {
  struct Slot {
    const void* row;
    unsigned* r;
    bool transposed;
  } mine{row, r, transposed};
  const char* what = transposed ? "ldmatrix.trans" : "ldmatrix";
  now.self->what = what;
  now.self->place = at;
  if (!is_shared_memory(row)) {
    kernel_fault(std::string(what) + " of memory that is not shared: " + this_thread_text());
  }
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) {
    kernel_fault("misaligned access: " + std::string(what) + " needs 16 bytes, " +
                 this_thread_text() + ", " + describe_shared(shared_shadow().offset(row)));
  }
  check_read(row, 16, nullptr);
  collective(~0u, what, at, &mine, [](void** slots, std::uint32_t) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::uint16_t m[8][8];
      for (int y = 0; y < 8; ++y) {
        std::memcpy(m[y], static_cast<const Slot*>(slots[8 * matrix + y])->row, sizeof m[y]);
      }
      for (int lane = 0; lane < 32; ++lane) {
        const Slot& s = *static_cast<const Slot*>(slots[lane]);
        const int y = lane / 4, x = 2 * (lane % 4);
        const unsigned low = s.transposed ? m[x][y] : m[y][x];
        const unsigned high = s.transposed ? m[x + 1][y] : m[y][x + 1];
        s.r[matrix] = low | high << 16;
      }
    }
  });
}

}  // namespace cputrain::emulated
