#pragma once

#include "backends/cpu/amx/kernels.h"
#include "backends/cpu/cpu_backend.h"

namespace cputrain::cpu::amx {

/// Whether kernels may use HardwareTiles: this machine has tiles of bf16, oneDNN may use them, too
/// (ONEDNN_MAX_CPU_ISA), the system permits their state to this process, and they compute the bits
/// that EmulatedTiles does, which is tried. Asked once in a process; threads share the permission.
bool hardware_works();

/// Those of HardwareTiles where hardware_works(), or the quickest on EmulatedTiles, which need
/// AVX2; null where this machine has none.
const Kernels* find_kernels(KernelChoice::Tiles);

}  // namespace cputrain::cpu::amx
