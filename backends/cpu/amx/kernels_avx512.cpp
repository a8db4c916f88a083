#include "backends/cpu/amx/emulated_tiles.h"
#include "backends/cpu/amx/hardware_tiles.h"
#include "backends/cpu/amx/kernels.inl"

namespace cputrain::cpu::amx {

const Kernels& hardware_kernels() {
  static constexpr Kernels kernels = make_kernels<HardwareTiles>("own AMX", "own AMX of floats");
  return kernels;
}

const Kernels& avx512_kernels() {
  static constexpr Kernels kernels =
      make_kernels<EmulatedTiles>("own AMX, emulated", "own AMX of floats, emulated");
  return kernels;
}

}  // namespace cputrain::cpu::amx
