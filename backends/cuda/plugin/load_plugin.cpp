#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "contracts.h"  // which the build writes
#include "core/error.h"
#include "core/text.h"

namespace cputrain::cuda {
namespace {

namespace fs = std::filesystem;

/// What became of looking for the plugin.
struct Plugin {
  const PluginCalls* calls = nullptr;
  std::string why_none{}, remedy{};  ///< where it has none
};

constexpr const char* kBuildAgain =
    "build the program and its plugin together (scripts/build) and keep both files";

/// Where plugins are looked for: what CPUTRAIN_PLUGINS names, alone; else beside the program, and
/// where an installation has them.
std::vector<fs::path> plugin_folders() {
  if (const char* named = std::getenv("CPUTRAIN_PLUGINS")) return {named};
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return {program.parent_path(), program.parent_path() / ".." / "lib" / "cputrain"};
}

Plugin refused(const fs::path& file, const std::string& why) {
  return {nullptr, fmt::format("the plugin {} cannot be used: {}", printable(file.string()), why),
          kBuildAgain};
}

/// Whether a table of `count` entries of `size` bytes each lies within so many bytes.
bool holds(std::size_t bytes, Elf64_Off begin, std::size_t count, std::size_t size) {
  return begin <= bytes && count * size <= bytes - begin;
}

/// The parts that the loader maps, and the table of sections, which linkers write last.
bool is_whole(const std::string& bytes, const Elf64_Ehdr& header) {
  if (header.e_phentsize != sizeof(Elf64_Phdr) ||
      !holds(bytes.size(), header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr)) ||
      !holds(bytes.size(), header.e_shoff, header.e_shnum, header.e_shentsize)) {
    return false;
  }
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    std::memcpy(&part, bytes.data() + header.e_phoff + i * sizeof(part), sizeof(part));
    if (!holds(bytes.size(), part.p_offset, 1, part.p_filesz)) return false;
  }
  return true;
}

/// "" for a whole file, else what is wrong with it. It is looked at before the system's loader
/// does, since that trusts what it maps: a file that was cut short, or that other headers were made
/// into, would end the process instead of being refused.
std::string what_is_wrong(const std::string& bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof(header)) return "it is no shared library";
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_DYN) {
    return "it is no shared library";
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "it is for another machine";
  return is_whole(bytes, header) ? "" : "it was cut short";
}

/// The text behind `mark` up to `end`; "" where there is none.
std::string text_behind(const std::string& bytes, std::string_view mark, char end) {
  constexpr std::size_t kMost = 400;
  const std::size_t found = bytes.find(mark);
  if (found == std::string::npos) return "";
  const std::size_t begin = found + mark.size();
  const std::size_t length = std::min(bytes.find(end, begin), bytes.size()) - begin;
  return length <= kMost ? bytes.substr(begin, length) : "";
}

/// What keeps a file from being loaded, by what is in it.
std::string why_not_loaded(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return "it is no file";
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  if (!stream) return "it cannot be read";
  const std::string wrong = what_is_wrong(bytes);
  if (!wrong.empty()) return wrong;
  const std::string made_from = text_behind(bytes, CPUTRAIN_PLUGIN_MARK, kBuildMarkEnd);
  if (made_from.empty()) return "it is no plugin of cputrain";
  if (made_from == CPUTRAIN_CONTRACTS) return "";
  return fmt::format("it is of another build ({}, and this program {})", printable(made_from),
                     CPUTRAIN_CONTRACTS);
}

/// The loader's last words, which begin with the file's name.
std::string loader_text(const fs::path& file) {
  const char* const error = ::dlerror();
  std::string text = error ? error : "the system does not load it";
  if (const std::string name = file.string() + ": "; text.starts_with(name))
    text.erase(0, name.size());
  return printable(text);
}

/// The library stays loaded: backends and exceptions of its code may live until the process ends.
Plugin load(const fs::path& file) {
  const std::string wrong = why_not_loaded(file);
  if (!wrong.empty()) return refused(file, wrong);
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return refused(file, loader_text(file));
  void* const entry = ::dlsym(library, kPluginEntry);
  if (!entry) return refused(file, fmt::format("it has no function {}", kPluginEntry));
  return {reinterpret_cast<PluginEntry>(entry)()};
}

Plugin look_for_plugin() {
  const PluginName name = plugin_name();
  if (name.file.empty()) return {nullptr, name.missing, name.remedy};
  std::error_code ignored;
  std::vector<std::string> folders;
  for (const fs::path& folder : plugin_folders()) {
    if (fs::exists(folder / name.file, ignored))
      return load(fs::absolute(folder / name.file, ignored));
    folders.push_back(printable(folder.lexically_normal().string()));
  }
  return {nullptr,
          fmt::format("the plugin {} is not there (looked for in {})", name.file,
                      join(folders, " and ")),
          "put it beside the program, or say where it is: CPUTRAIN_PLUGINS=FOLDER"};
}

const Plugin& plugin() {
  static const Plugin loaded = look_for_plugin();
  return loaded;
}

const PluginCalls& calls() {
  const Plugin& here = plugin();
  if (here.calls) return *here.calls;
  fail(ExitCode::usage, compute::no_device_text("cuda", {{}, here.why_none, here.remedy}));
}

/// The driver hides devices that this variable leaves out, without a message.
void blame_variable(compute::DeviceList& list) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!visible || !list.devices.empty()) return;
  list.why_none += fmt::format("; CUDA_VISIBLE_DEVICES is \"{}\"", printable(visible));
  list.remedy += ", or unset CUDA_VISIBLE_DEVICES";
}

}  // namespace

compute::DeviceList cuda_devices() {
  const Plugin& here = plugin();
  if (!here.calls) return {.devices = {}, .why_none = here.why_none, .remedy = here.remedy};
  compute::DeviceList list;
  try {
    list = here.calls->devices();
  } catch (const Error& error) {
    if (error.code() == ExitCode::usage) throw;  // about the emulated device's settings
    list = {.devices = {}, .why_none = error.what(), .remedy = "see what nvidia-smi says"};
  }
  blame_variable(list);
  return list;
}

std::unique_ptr<compute::Backend> make_cuda_backend(const DeviceChoice& choice) {
  return calls().make(choice);
}

void run_kernel_cases(int device, std::uint64_t seed, const compute::SelftestSink& run) {
  calls().run_kernel_cases(device, seed, run);
}

}  // namespace cputrain::cuda
