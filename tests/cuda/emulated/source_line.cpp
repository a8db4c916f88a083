#include "emulated/source_line.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace cputrain::emulated {
namespace {

/// The first line, from the inside of functions that lie in each other, that is not of the headers
/// that stand for CUDA's own.
std::string line_of(const std::string& command) {
  char buffer[1024];
  std::string found;
  FILE* lines = popen(command.c_str(), "r");
  if (!lines) return {};
  while (std::fgets(buffer, sizeof buffer, lines)) {
    const std::string line = buffer;
    const bool language = line.starts_with("language.h:") || line.starts_with("tensor_core.h:");
    if (found.empty() && !language) found = line.substr(0, line.find_first_of(" \n"));
  }
  pclose(lines);
  return found;
}

/// The child that looks the line up has another /proc/self.
std::string this_program() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).string();
}

using Ranges = std::vector<std::pair<std::uintptr_t, std::uintptr_t>>;

int add_constants(dl_phdr_info* info, std::size_t, void* ranges) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const bool constant =
        (part.p_type == PT_LOAD && !(part.p_flags & PF_W)) || part.p_type == PT_GNU_RELRO;
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (constant) static_cast<Ranges*>(ranges)->emplace_back(begin, begin + part.p_memsz);
  }
  return 0;
}

bool in(const Ranges& ranges, std::uintptr_t address) {
  for (const auto& [begin, end] : ranges) {
    if (address >= begin && address < end) return true;
  }
  return false;
}

}  // namespace

std::string source_line(const void* return_address) {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address) - 1;
  Dl_info info;
  link_map* module = nullptr;
  if (!return_address || !dladdr1(reinterpret_cast<void*>(address), &info,
                                  reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP)) {
    return "an unknown place";
  }
  const std::string path = module->l_name[0] ? std::string(module->l_name) : this_program();
  char offset[32];
  std::snprintf(offset, sizeof offset, "%#lx",
                static_cast<unsigned long>(address - module->l_addr));
  const std::string line = line_of("addr2line -i -s -e '" + path + "' " + offset + " 2>/dev/null");
  if (line.empty() || line[0] == '?') return path + "+" + offset;
  return line;
}

bool is_constant_of_program(const void* p) {
  static std::mutex mutex;
  static Ranges ranges;
  const std::lock_guard lock(mutex);
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if (in(ranges, address)) return true;
  ranges.clear();  // a library may have come since
  dl_iterate_phdr(add_constants, &ranges);
  return in(ranges, address);
}

}  // namespace cputrain::emulated
