#include "backends/cpu/amx/emulated_tiles.h"
#include "backends/cpu/amx/kernels.inl"

namespace cputrain::cpu::amx {

const Kernels& avx2_kernels() {
  static constexpr Kernels kernels =
      make_kernels<EmulatedTiles>("own AMX, emulated", "own AMX of floats, emulated");
  return kernels;
}

}  // namespace cputrain::cpu::amx
