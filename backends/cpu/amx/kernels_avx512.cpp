#include "backends/cpu/amx/emulated_tiles.h"
#include "backends/cpu/amx/hardware_tiles.h"
#include "backends/cpu/amx/kernels.inl"

namespace cputrain::cpu::amx {

const Kernels& hardware_kernels() {
  static constexpr Kernels kernels = make_kernels<HardwareTiles>("own AMX");
  return kernels;
}

const Kernels& avx512_kernels() {
  static constexpr Kernels kernels = make_kernels<EmulatedTiles>("own AMX, emulated");
  return kernels;
}

}  // namespace cputrain::cpu::amx
