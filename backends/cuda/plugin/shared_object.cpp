#include "backends/cuda/plugin/shared_object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

namespace cputrain::cuda {
namespace {

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

}  // namespace

SharedObject::SharedObject(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    why_not_ = "it is no file";
    return;
  }
  std::ifstream file(path, std::ios::binary);
  bytes_.assign(std::istreambuf_iterator<char>(file), {});
  why_not_ = file ? what_is_wrong(bytes_) : "it cannot be read";
}

std::string SharedObject::text_behind(std::string_view mark, char end) const {
  constexpr std::size_t kMost = 400;
  const std::size_t found = bytes_.find(mark);
  if (found == std::string::npos) return "";
  const std::size_t begin = found + mark.size();
  const std::size_t length = std::min(bytes_.find(end, begin), bytes_.size()) - begin;
  return length <= kMost ? bytes_.substr(begin, length) : "";
}

}  // namespace cputrain::cuda
