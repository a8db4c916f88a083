#include "backends/topology/cpu_info.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <sstream>
#include <vector>

namespace cputrain::topology {

namespace {

/// The value of the first line "name : value".
std::string value_of(std::string_view cpuinfo, std::string_view name) {
  std::istringstream in{std::string(cpuinfo)};
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(name)) continue;
    if (line.find_last_not_of(" \t", colon - 1) + 1 != name.size()) continue;  // a longer name
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

/// "85" or "0xd0c"; nothing for other texts.
std::optional<int> number_of(std::string_view cpuinfo, std::string_view name) {
  std::string text = value_of(cpuinfo, name);
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.erase(0, 2);
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, hexadecimal ? 16 : 10);
  if (error != std::errc() || rest != end || number < 0) return std::nullopt;
  return number;
}

/// What kernels of ours and of oneDNN differ by, from the oldest on: of x86, and of Arm.
constexpr const char* kInstructions[] = {
    "sse4_2",   "avx",      "fma",      "avx2",        "avx_vnni",    "avx512f",     "avx512cd",
    "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile",
    "amx_int8", "amx_bf16", "amx_fp16", "asimd",       "asimdhp",     "asimddp",     "bf16",
    "i8mm",     "sve",      "sve2",     "svebf16",     "svei8mm"};

/// Those of them that the first processor has.
std::vector<std::string> instructions_of(std::string_view cpuinfo) {
  std::istringstream words(value_of(cpuinfo, "flags") + " " + value_of(cpuinfo, "Features"));
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  std::vector<std::string> instructions;
  std::ranges::copy_if(kInstructions, std::back_inserter(instructions),
                       [&](const char* name) { return flags.contains(name); });
  return instructions;
}

struct Extra {
  const char* flag;
  const char* word;
};

/// "AVX-512 (bf16, VNNI)": the extras that are among the flags, after the name.
std::string with_extras(const std::string& name, const std::set<std::string>& flags,
                        std::initializer_list<Extra> extras) {
  std::string list;
  for (const Extra& extra : extras) {
    if (flags.contains(extra.flag)) list += (list.empty() ? "" : ", ") + std::string(extra.word);
  }
  return list.empty() ? name : name + " (" + list + ")";
}

}  // namespace

std::string instruction_set(std::string_view cpuinfo) {
  const std::vector<std::string> found = instructions_of(cpuinfo);
  const std::set<std::string> flags(found.begin(), found.end());
  std::string text;
  if (flags.contains("avx512f")) {
    text = with_extras("AVX-512", flags,
                       {{"avx512_bf16", "bf16"}, {"avx512_fp16", "fp16"}, {"avx512_vnni", "VNNI"}});
  } else if (flags.contains("avx2")) {
    text = with_extras("AVX2", flags, {{"fma", "FMA"}, {"avx_vnni", "VNNI"}});
  } else if (flags.contains("avx")) {
    text = "AVX";
  } else if (flags.contains("sse4_2")) {
    text = "SSE4.2";
  } else if (flags.contains("sve")) {  // Arm
    text = "SVE";
  } else if (flags.contains("asimd")) {
    text = "NEON";
  }
  if (flags.contains("amx_tile")) {
    text += ", " + with_extras("AMX", flags, {{"amx_bf16", "bf16"}, {"amx_int8", "int8"}});
  }
  return text;
}

placement::CpuId cpu_id(std::string_view cpuinfo) {
  const std::string implementer = value_of(cpuinfo, "CPU implementer");
  return {.vendor = implementer.empty() ? value_of(cpuinfo, "vendor_id") : implementer,
          .family = number_of(cpuinfo, "cpu family"),
          .model = number_of(cpuinfo, "model"),
          .stepping = number_of(cpuinfo, "stepping"),
          .part = number_of(cpuinfo, "CPU part"),
          .variant = number_of(cpuinfo, "CPU variant"),
          .revision = number_of(cpuinfo, "CPU revision"),
          .instructions = instructions_of(cpuinfo),
          .microcode = value_of(cpuinfo, "microcode")};
}

std::string cpu_model(std::string_view cpuinfo) {
  const std::string model = value_of(cpuinfo, "model name");
  return model.empty() ? "unknown" : model;
}

double total_memory(std::string_view meminfo) {
  constexpr double kUnit = 1024;  // the file's "kB"
  const std::string text = value_of(meminfo, "MemTotal");
  double units = 0;
  std::from_chars(text.data(), text.data() + text.size(), units);
  return units * kUnit;
}

}  // namespace cputrain::topology
