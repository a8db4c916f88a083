#pragma once

#include "backends/cpu/amx/tiles.h"

namespace cputrain::cpu::amx {
namespace {  // each file that includes this has a copy for its instruction set

/// What LDTILECFG reads: palette 1, and the size of each tile.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 0, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfiguration) == 64);

inline TileConfiguration whole_tiles() {
  TileConfiguration made;
  made.palette = 1;
  for (int i = 0; i < kTiles; ++i) {
    made.row_bytes[i] = kRowBytes;
    made.rows[i] = kTileRows;
  }
  return made;
}

/// The processor's, which the system must have permitted (availability.h). While an object lives
/// the calling thread has whole tiles; then it has again what it had, since oneDNN may leave a
/// configuration of its own. Instructions are assembly, because GCC 12's _tile_loadconfig does not
/// say that it reads memory, and its intrinsics want flags that this file need not have.
class HardwareTiles {
 public:
  HardwareTiles() {
    asm volatile("sttilecfg %0" : "=m"(before_)::"memory");
    const TileConfiguration wanted = whole_tiles();
    asm volatile("ldtilecfg %0" ::"m"(wanted) : "memory");
  }
  ~HardwareTiles() {
    if (before_.palette == 0) {
      asm volatile("tilerelease" ::: "memory");
    } else {
      asm volatile("ldtilecfg %0" ::"m"(before_) : "memory");
    }
  }
  HardwareTiles(const HardwareTiles&) = delete;
  HardwareTiles& operator=(const HardwareTiles&) = delete;

  template <int kTile>
  [[gnu::always_inline]] void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  template <int kTile>
  [[gnu::always_inline]] void load(const void* from) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(kRowBytes), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  [[gnu::always_inline]] void store(void* to) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(kRowBytes), "i"(kTile) : "memory");
  }
  template <int kC, int kA, int kB>
  [[gnu::always_inline]] void multiply_add() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
  }

 private:
  TileConfiguration before_;
};

}  // namespace
}  // namespace cputrain::cpu::amx
