#include "backends/cpu/amx/availability.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include "backends/cpu/kernels/instruction_set.h"

namespace cputrain::cpu::amx {
namespace {

bool processor_has_tiles() {
  constexpr unsigned kBf16Tiles = 1u << 22, kTileRegisters = 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBf16Tiles) != 0 &&
         (d & kTileRegisters) != 0;
}

/// Whether the system saves the state of tiles when it switches threads.
bool system_saves_tiles() {
  constexpr unsigned kSavesStates = 1u << 27, kTileStates = 3u << 17;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSavesStates) == 0) return false;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileStates) == kTileStates;
}

/// Linux gives the 8 KB of a thread's tiles to processes that ask for them.
bool system_permits_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

/// Products of ordinary numbers, then of some so small that many products are denormal.
bool computes_as_emulated() {
  alignas(64) Bf16 a[kFactors], b[kFactors];
  alignas(64) float sums[2][kSums];
  std::uint32_t random = 1;
  const auto next = [&] { return (random = random * 1664525u + 1013904223u) >> 8; };
  struct Range {
    std::uint32_t factors, sums;  // the least, as bits
  };
  for (const Range& range : {Range{0x3c00, 0x3e000000}, Range{0x1d00, 0}}) {
    const auto factor = [&] {
      return static_cast<Bf16>((next() & 0x8000) | (range.factors + (next() & 0x07ff)));
    };
    for (std::size_t i = 0; i < kFactors; ++i) {
      a[i] = factor();
      b[i] = factor();
    }
    for (std::size_t i = 0; i < kSums; ++i) {
      const std::uint32_t bits = (next() & 1) << 31 | (range.sums + next());
      sums[0][i] = sums[1][i] = std::bit_cast<float>(bits);
    }
    hardware_kernels().multiply_add_once(a, b, sums[0]);
    avx512_kernels().multiply_add_once(a, b, sums[1]);
    if (std::memcmp(sums[0], sums[1], sizeof sums[0]) != 0) return false;
  }
  return true;
}

}  // namespace

bool hardware_works() {
  static const bool works = supports_amx() && processor_has_tiles() && system_saves_tiles() &&
                            system_permits_tiles() && computes_as_emulated();
  return works;
}

const Kernels* find_kernels(KernelChoice::Tiles wanted) {
  if (wanted == KernelChoice::Tiles::none) return nullptr;
  if (wanted == KernelChoice::Tiles::hardware) {
    return hardware_works() ? &hardware_kernels() : nullptr;
  }
  if (supports_bf16()) return &avx512_kernels();
  return supports(InstructionSet::avx2) ? &avx2_kernels() : nullptr;
}

}  // namespace cputrain::cpu::amx
