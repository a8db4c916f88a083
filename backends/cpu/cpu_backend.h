#pragma once

#include <memory>
#include <string>

#include "compute/backend.h"

namespace cputrain::cpu {

/// What may compute convolutions, besides direct algorithms.
struct KernelChoice {
  bool winograd = false;    ///< rounding is about ten times that of direct convolution
  bool skip_zeros = false;  ///< leaves out products with zeros; exact
  bool bf16 = false;        ///< factors are rounded to bfloat16; sums are floats
  /// Our own kernels of such factors, in tiles: AMX where this machine has it, or emulated, which
  /// is very slow and for tests.
  enum class Tiles { none, hardware, emulated };
  Tiles tiles = Tiles::none;
  /// The same kernels for floats, each as the sum of three such factors: rounding is that of floats
  /// or less. Tried beside others where `measure` is set, else taken.
  Tiles float_tiles = Tiles::none;
  /// Training programs try what is allowed and take the quickest; else a rule decides, so that the
  /// same command gives the same bits every time.
  bool measure = false;
};

/// The backend for x86 CPUs: oneDNN's convolutions and matrix products and our own kernels on
/// OpenMP threads, 32-bit floats. Throws Error(usage) where this build has no oneDNN; compile()
/// does where the machine lacks what `kernels` ask for.
std::unique_ptr<compute::Backend> make_cpu_backend(int threads, const KernelChoice& kernels);

bool cpu_backend_available();
/// Whether the backend and this machine have --precision bf16.
bool cpu_backend_has_bf16();
/// The library and the instructions that it may use here, "oneDNN 2.6.3 for AVX-512 with bf16"; ""
/// where this build has none. Reports distinguish runs by it.
std::string cpu_library_versions();

}  // namespace cputrain::cpu
