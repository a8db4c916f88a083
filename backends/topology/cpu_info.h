#pragma once

#include <string>
#include <string_view>

#include "system/placement/machine.h"

namespace cputrain::topology {

/// The vector instructions that matter to training, in words: "AVX-512 (bf16, VNNI), AMX (bf16,
/// int8)". Takes /proc/cpuinfo's text, which is cpuid less what the kernel has switched off; ""
/// where it names none.
std::string instruction_set(std::string_view cpuinfo);

/// By the first processor that /proc/cpuinfo names.
placement::CpuId cpu_id(std::string_view cpuinfo);

/// "Intel(R) Xeon(R) CPU @ 2.80GHz"; "unknown" where /proc/cpuinfo has no such line.
std::string cpu_model(std::string_view cpuinfo);

/// All memory in bytes, by /proc/meminfo's text; 0 where it is not there.
double total_memory(std::string_view meminfo);

}  // namespace cputrain::topology
