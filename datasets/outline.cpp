#include "datasets/outline.h"

#include <zlib.h>

#include <cstdlib>

namespace cputrain {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::int64_t big_endian_32(Bytes file, std::size_t at) {
  return static_cast<std::int64_t>(file[at]) << 24 | file[at + 1] << 16 | file[at + 2] << 8 |
         file[at + 3];
}

std::int64_t little_endian_16(Bytes file, std::size_t at) { return file[at] | file[at + 1] << 8; }

std::int64_t little_endian_32(Bytes file, std::size_t at) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(little_endian_16(file, at)) |
                                   static_cast<std::uint32_t>(little_endian_16(file, at + 2))
                                       << 16);
}

/// Chunks of length, type, data, CRC-32 up to IEND (PNG specification, 5.3).
Outline png_outline(Bytes file) {
  Outline outline{true, false, 0, 0, "the file ends before its IEND chunk"};
  if (file.size() >= 24) {
    outline.width = big_endian_32(file, 16);
    outline.height = big_endian_32(file, 20);
  }
  constexpr std::int64_t kIend = 0x49454E44;
  for (std::size_t at = 8; file.size() - at >= 12;) {
    const auto length = static_cast<std::size_t>(big_endian_32(file, at));
    if (length > file.size() - at - 12) return outline;
    const Bytes checked = file.subspan(at + 4, 4 + length);
    const auto sum = crc32(0, checked.data(), static_cast<uInt>(checked.size()));
    if (static_cast<std::int64_t>(sum) != big_endian_32(file, at + 8 + length)) {
      outline.valid = false;
      outline.problem = "a PNG chunk has a wrong checksum";
      return outline;
    }
    if (big_endian_32(file, at + 4) == kIend) {
      outline.complete = true;
      return outline;
    }
    at += 12 + length;
  }
  return outline;
}

/// File header of 14 bytes, then an information header that begins with its own size.
Outline bmp_outline(Bytes file) {
  Outline outline{true, false, 0, 0, "the file ends before its last row"};
  const bool old_header = file[14] == 12;  // OS/2: sides of 16 bits
  if (file.size() < (old_header ? 26u : 34u)) return outline;
  outline.width = old_header ? little_endian_16(file, 18) : little_endian_32(file, 18);
  outline.height = std::llabs(old_header ? little_endian_16(file, 20) : little_endian_32(file, 22));
  const std::int64_t bits = little_endian_16(file, old_header ? 24 : 28);
  const std::int64_t compression = old_header ? 0 : little_endian_32(file, 30);
  const std::int64_t first_row = little_endian_32(file, 10);
  // Run-length coded rows (1, 2) have no size that could be known here; stb refuses them.
  const std::int64_t row = (outline.width * bits + 31) / 32 * 4;
  const bool coded = compression == 1 || compression == 2;
  outline.complete =
      coded || first_row + row * outline.height <= static_cast<std::int64_t>(file.size());
  return outline;
}

/// A GIF is a screen header, then blocks: extensions (0x21) and pictures (0x2C), both of which end
/// in sub-blocks of up to 255 bytes, each preceded by its length, 0 being the last.
Outline gif_outline(Bytes file) {
  Outline outline{true, false, 0, 0, "the file ends before its first picture does"};
  if (file.size() < 13) return outline;
  outline.width = little_endian_16(file, 6);
  outline.height = little_endian_16(file, 8);
  const auto palette = [](std::uint8_t flags) -> std::size_t {
    return (flags & 0x80) != 0 ? std::size_t{3} << ((flags & 7) + 1) : 0;
  };
  std::size_t at = 13 + palette(file[10]);
  while (at < file.size()) {
    const bool picture = file[at] == 0x2C;
    if (!picture && file[at] != 0x21) {
      outline.valid = false;
      outline.problem = "a GIF block of unknown kind";
      return outline;
    }
    // Extension: introducer and label. Picture: descriptor, palette, code size.
    if (picture && at + 10 > file.size()) return outline;
    at += picture ? 11 + palette(file[at + 9]) : 2;
    while (at < file.size() && file[at] != 0) at += std::size_t{1} + file[at];
    if (at >= file.size()) return outline;
    ++at;
    if (picture) {
      outline.complete = true;
      return outline;
    }
  }
  return outline;
}

}  // namespace

Outline outline_of(std::span<const std::uint8_t> file, Format format) {
  switch (format) {
    case Format::png:
      return png_outline(file);
    case Format::bmp:
      return bmp_outline(file);
    case Format::gif:
      return gif_outline(file);
    case Format::jpeg:
    case Format::unknown:
      break;
  }
  return {false, false, 0, 0, "not a format that is outlined"};
}

}  // namespace cputrain
