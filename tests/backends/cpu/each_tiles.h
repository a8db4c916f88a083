#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/amx/availability.h"
#include "backends/cpu/kernels/instruction_set.h"
#include "tests/backends/cpu/trapped_tiles.h"

namespace cputrain::cpu::amx {

/// Kernels of one kind of tiles, for a test's parameter.
struct TilesOf {
  std::string name;
  const Kernels& (*kernels)();
  bool here;  ///< whether this machine can run them
};

/// Cases for the kernels of each kind of tiles; those that are not here are skipped.
class EachTiles : public ::testing::TestWithParam<TilesOf> {
 protected:
  void SetUp() override {
    if (!GetParam().here) GTEST_SKIP() << "this CPU cannot run the tiles " << GetParam().name;
  }
};

/// What lies at whole cache lines in `memory`, which has 64 bytes more than are needed. All of it
/// is NaN, so that what was never written shows.
inline std::byte* scratch_in(std::vector<std::byte>& memory) {
  std::ranges::fill(memory, std::byte{0xff});
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  return memory.data() + (64 - address % 64) % 64;
}

/// AMX traps where a CPU lacks it, and is carried out then.
inline bool hardware_runs() {
  return hardware_works() || (supports_bf16() && !supports_amx() && trapped::carry_out_traps());
}

inline auto all_tiles() {
  return ::testing::Values(TilesOf{"emulated_avx512_bf16", avx512_kernels, supports_bf16()},
                           TilesOf{"emulated_avx2", avx2_kernels, supports(InstructionSet::avx2)},
                           TilesOf{"hardware", hardware_kernels, hardware_runs()});
}

inline std::string name_of_tiles(const ::testing::TestParamInfo<TilesOf>& instance) {
  return instance.param.name;
}

}  // namespace cputrain::cpu::amx
