#include "tests/datasets/archives/made_archives.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace cputrain::datasets {
namespace {

constexpr std::size_t kBlock = 512;

void add(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Numbers of so many bytes each, the lowest byte first.
void add_numbers(Bytes& to, int bytes, const std::vector<std::uint64_t>& numbers) {
  for (const std::uint64_t number : numbers) {
    for (int i = 0; i < bytes; ++i) to.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
  }
}

Bytes deflated(const Bytes& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(deflateBound(&stream, static_cast<uLong>(bytes.size())) + 32);
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// What the header of an entry and the directory have alike, from the flags on.
void add_facts(Bytes& to, const ArchivedFile& file, const Bytes& packed, bool wide) {
  constexpr std::uint64_t kElsewhere = 0xffffffff;
  const std::uint64_t sum = crc32_z(0, file.content.data(), file.content.size());
  add_numbers(to, 2, {file.flags, file.deflated ? 8u : 0u, 0, 0x21});
  add_numbers(to, 4,
              {sum, wide ? kElsewhere : packed.size(),
               wide ? kElsewhere : file.content.size() + file.grows});
  add_numbers(to, 2, {file.name.size()});
}

Bytes zip(const std::vector<ArchivedFile>& files, bool wide) {
  Bytes archive, directory;
  for (const ArchivedFile& file : files) {
    const Bytes packed = file.deflated ? deflated(file.content) : file.content;
    const std::uint64_t header = archive.size();
    add_numbers(archive, 4, {0x04034b50});
    add_numbers(archive, 2, {20});
    add_facts(archive, file, packed, false);
    add_numbers(archive, 2, {0});
    add(archive, bytes_of(file.name));
    add(archive, packed);
    add_numbers(directory, 4, {0x02014b50});
    add_numbers(directory, 2, {std::uint64_t{file.system} << 8 | 20, 20});
    add_facts(directory, file, packed, wide);
    add_numbers(directory, 2, {wide ? 28u : 0u, 0, 0, 0});
    add_numbers(directory, 4, {std::uint64_t{file.mode} << 16, wide ? 0xffffffff : header});
    add(directory, bytes_of(file.name));
    if (!wide) continue;
    add_numbers(directory, 2, {1, 24});
    add_numbers(directory, 8, {file.content.size(), packed.size(), header});
  }
  const std::uint64_t begin = archive.size(), bytes = directory.size(), count = files.size();
  add(archive, directory);
  if (wide) {
    const std::uint64_t end = archive.size();
    add_numbers(archive, 4, {0x06064b50});
    add_numbers(archive, 8, {44});
    add_numbers(archive, 2, {45, 45});
    add_numbers(archive, 4, {0, 0});
    add_numbers(archive, 8, {count, count, bytes, begin});
    add_numbers(archive, 4, {0x07064b50, 0});
    add_numbers(archive, 8, {end});
    add_numbers(archive, 4, {1});
  }
  add_numbers(archive, 4, {0x06054b50});
  add_numbers(archive, 2, {0, 0, wide ? 0xffff : count, wide ? 0xffff : count});
  add_numbers(archive, 4, {wide ? 0xffffffff : bytes, wide ? 0xffffffff : begin});
  add_numbers(archive, 2, {0});
  return archive;
}

void set_text(Bytes& tar, std::size_t at, const std::string& text) {
  std::ranges::copy(text, tar.begin() + static_cast<std::ptrdiff_t>(at));
}

/// The checksum of the header there, in which it counts as blanks.
void set_checksum(Bytes& tar, std::size_t at) {
  set_text(tar, at + 148, "        ");
  unsigned sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) sum += tar[at + i];
  set_text(tar, at + 148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}

std::size_t octal_at(const Bytes& tar, std::size_t at, std::size_t digits) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (tar[at + i] < '0' || tar[at + i] > '7') break;
    value = value * 8 + (tar[at + i] - '0');
  }
  return value;
}

}  // namespace

Bytes zip_of(const std::vector<ArchivedFile>& files) { return zip(files, false); }
Bytes zip64_of(const std::vector<ArchivedFile>& files) { return zip(files, true); }

Bytes tar_of(const std::vector<ArchivedFile>& files) {
  Bytes tar;
  for (const ArchivedFile& file : files) {
    const std::size_t at = tar.size();
    const bool is_file = file.type == '0' && !file.name.ends_with('/');
    tar.resize(at + kBlock);
    set_text(tar, at, file.name.substr(0, 100));
    set_text(tar, at + 100, "0000644");
    set_text(tar, at + 124, fmt::format("{:011o}", is_file ? file.content.size() + file.grows : 0));
    set_text(tar, at + 136, "00000000000");
    tar[at + 156] = static_cast<std::uint8_t>(file.name.ends_with('/') ? '5' : file.type);
    if (file.type == '1' || file.type == '2') set_text(tar, at + 157, "there.png");
    set_text(tar, at + 257,
             std::string("ustar\0"
                         "00",
                         8));
    set_checksum(tar, at);
    if (is_file) add(tar, file.content);
    tar.resize((tar.size() + kBlock - 1) / kBlock * kBlock);
  }
  tar.resize(tar.size() + 2 * kBlock);
  return tar;
}

Bytes with_tar_checksums(const Bytes& file) {
  Bytes tar = file;
  for (std::size_t at = 0; at + kBlock <= tar.size();) {
    const bool empty = std::all_of(tar.begin() + static_cast<std::ptrdiff_t>(at),
                                   tar.begin() + static_cast<std::ptrdiff_t>(at + kBlock),
                                   [](std::uint8_t byte) { return byte == 0; });
    if (empty) break;
    set_checksum(tar, at);
    at += kBlock + (octal_at(tar, at + 124, 11) + kBlock - 1) / kBlock * kBlock;
  }
  return tar;
}

}  // namespace cputrain::datasets
