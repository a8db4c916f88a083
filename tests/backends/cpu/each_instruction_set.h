#pragma once

#include <gtest/gtest.h>

#include <string>

#include "backends/cpu/kernels/instruction_set.h"

namespace cputrain::cpu {

/// Cases for the kernels of each instruction set; those that are not here are skipped.
class EachInstructionSet : public ::testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    if (!supports(GetParam())) GTEST_SKIP() << "no " << name_of(GetParam());
  }
};

inline auto all_instruction_sets() {
  return ::testing::Values(InstructionSet::plain, InstructionSet::avx2, InstructionSet::avx512);
}

inline std::string name_of_set(const ::testing::TestParamInfo<InstructionSet>& instance) {
  if (instance.param == InstructionSet::avx512) return "AVX512";
  return instance.param == InstructionSet::avx2 ? "AVX2" : "plain";
}

}  // namespace cputrain::cpu
