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
  if (set == InstructionSet::avx512) return __builtin_cpu_supports("x86-64-v4");
  if (set == InstructionSet::avx2) return __builtin_cpu_supports("x86-64-v3");
  return true;
}

InstructionSet best_instruction_set() {
  if (supports(InstructionSet::avx512) && may(dnnl::cpu_isa::avx512_core)) {
    return InstructionSet::avx512;
  }
  if (supports(InstructionSet::avx2) && may(dnnl::cpu_isa::avx2)) return InstructionSet::avx2;
  return InstructionSet::plain;
}

bool supports_bf16() {
  return best_instruction_set() == InstructionSet::avx512 && __builtin_cpu_supports("avx512bf16") &&
         may(dnnl::cpu_isa::avx512_core_bf16);
}

bool supports_amx() { return supports_bf16() && may(dnnl::cpu_isa::avx512_core_amx); }

std::string name_of(InstructionSet set) {
  if (set == InstructionSet::avx512) return "AVX-512";
  return set == InstructionSet::avx2 ? "AVX2" : "less than AVX2";
}

}  // namespace cputrain::cpu
