#include "backends/cpu/kernels/instruction_set.h"

#include <oneapi/dnnl/dnnl.hpp>

namespace cputrain::cpu {
namespace {

bool may(dnnl::cpu_isa wanted) {
  const auto effective = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto bits = static_cast<unsigned>(wanted);
  return (effective & bits) == bits;
}

}  // namespace

bool supports(InstructionSet set) {
  if (set == InstructionSet::avx512) {
    return __builtin_cpu_supports("x86-64-v4") && may(dnnl::cpu_isa::avx512_core);
  }
  if (set == InstructionSet::avx2) {
    return __builtin_cpu_supports("x86-64-v3") && may(dnnl::cpu_isa::avx2);
  }
  return true;
}

InstructionSet best_instruction_set() {
  for (const InstructionSet set : {InstructionSet::avx512, InstructionSet::avx2}) {
    if (supports(set)) return set;
  }
  return InstructionSet::plain;
}

bool supports_bf16() {
  return supports(InstructionSet::avx512) && __builtin_cpu_supports("avx512bf16") &&
         may(dnnl::cpu_isa::avx512_core_bf16);
}

bool supports_amx() { return supports_bf16() && may(dnnl::cpu_isa::avx512_core_amx); }

std::string name_of(InstructionSet set) {
  if (set == InstructionSet::avx512) return "AVX-512";
  return set == InstructionSet::avx2 ? "AVX2" : "less than AVX2";
}

}  // namespace cputrain::cpu
