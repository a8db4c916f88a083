#pragma once

#include <string>

/// Kernels that are worth more care than clones.h gives have one copy for each of these, picked by
/// the caller: a test can reach all that its machine has. A template does the work and is inlined
/// into functions that carry the attribute.
namespace cputrain::cpu {

enum class InstructionSet {
  plain,   ///< any x86-64
  avx2,    ///< with FMA: "x86-64-v3"
  avx512,  ///< "x86-64-v4"
};

#define CPUTRAIN_AVX2 [[gnu::target("arch=x86-64-v3")]]
#define CPUTRAIN_AVX512 [[gnu::target("arch=x86-64-v4")]]

/// Whether this machine has it and oneDNN may use it: ONEDNN_MAX_CPU_ISA makes a machine, and what
/// tests see of it, one that has less.
bool supports(InstructionSet);

/// Whether this machine multiplies 16-bit brain floats (AVX512-BF16) and oneDNN may.
bool supports_bf16();

/// Whether this machine multiplies them in tiles (AMX), its system lets it and oneDNN may.
bool supports_amx();

/// The last one that supports() knows here.
InstructionSet best_instruction_set();

/// "AVX-512", "AVX2" or "less than AVX2".
std::string name_of(InstructionSet);

}  // namespace cputrain::cpu
