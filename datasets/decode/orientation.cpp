#include "datasets/decode/orientation.h"

#include <algorithm>
#include <string_view>

#include "core/casts.h"
#include "datasets/decode/byte_order.h"

namespace cputrain::datasets {
namespace {

using Bytes = std::span<const std::uint8_t>;
using namespace std::string_view_literals;

bool begins_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

/// The tag in the first directory of a TIFF (section 2 of TIFF 6.0; in BigTIFF, version 43, counts
/// and places have 8 bytes), which is what EXIF data are, too.
int orientation_of_tiff(Bytes tiff) {
  constexpr std::uint64_t kOrientation = 274, kShort = 3, kLong = 4;
  const bool little = begins_with(tiff, "II"sv);
  if (!little && !begins_with(tiff, "MM"sv)) return 1;
  const OrderedBytes numbers(tiff, little);
  const std::uint64_t version = numbers.at(2, 2);
  if (version != 42 && version != 43) return 1;
  const std::size_t word = version == 43 ? 8 : 4, entry = 4 + 2 * word;
  const std::size_t count_bytes = version == 43 ? 8 : 2;
  const std::uint64_t directory = numbers.at(version == 43 ? 8 : 4, word);
  if (directory == 0 || directory > tiff.size() || tiff.size() - directory < count_bytes) return 1;
  const std::uint64_t first = directory + count_bytes, most = (tiff.size() - first) / entry;
  const std::uint64_t entries = std::min(numbers.at(directory, count_bytes), most);
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t at = first + i * entry;
    if (numbers.at(at, 2) != kOrientation) continue;
    const std::uint64_t type = numbers.at(at + 2, 2);
    if ((type != kShort && type != kLong) || numbers.at(at + 4, word) != 1) return 1;
    const std::uint64_t value = numbers.at(at + 4 + word, type == kShort ? 2 : 4);
    return value >= 1 && value <= 8 ? to_int(value) : 1;
  }
  return 1;
}

/// Some programs keep the six bytes that a JPEG has before EXIF data elsewhere, too.
int orientation_of_block(Bytes block) {
  constexpr std::string_view kExif = "Exif\0\0"sv;
  return orientation_of_tiff(begins_with(block, kExif) ? block.subspan(kExif.size()) : block);
}

/// The first APP1 segment that holds EXIF data, before the first scan (ITU T.81, B.1.1).
int orientation_of_jpeg(Bytes file) {
  constexpr std::uint8_t kApp1 = 0xE1, kScan = 0xDA, kEnd = 0xD9;
  const OrderedBytes numbers(file, false);
  for (std::size_t at = 2; at + 4 <= file.size() && file[at] == 0xFF;) {
    const std::uint8_t marker = file[at + 1];
    if (marker == 0xFF) {  // fill bytes
      ++at;
      continue;
    }
    if (marker == kScan || marker == kEnd) break;
    const std::size_t length = numbers.at(at + 2, 2);
    if (length < 2 || length > file.size() - at - 2) break;
    const Bytes segment = file.subspan(at + 4, length - 2);
    if (marker == kApp1 && begins_with(segment, "Exif\0"sv)) return orientation_of_block(segment);
    at += 2 + length;
  }
  return 1;
}

/// Chunks of a PNG (length, name, data, checksum) or of a WebP (name, length, data to an even
/// length), of which one has EXIF data.
int orientation_of_chunks(Bytes file, std::size_t first, std::string_view wanted, bool png) {
  constexpr std::size_t kHead = 8;
  const OrderedBytes numbers(file, !png);
  for (std::size_t at = first; at + kHead <= file.size();) {
    const std::uint64_t length = numbers.at(at + (png ? 0 : 4), 4);
    const Bytes name = file.subspan(at + (png ? 4 : 0), 4);
    at += kHead;
    if (length > file.size() - at) break;
    if (begins_with(name, wanted)) return orientation_of_block(file.subspan(at, length));
    const std::uint64_t behind = length + (png ? 4 : length % 2);
    at += std::min<std::uint64_t>(behind, file.size() - at);
  }
  return 1;
}

}  // namespace

int orientation_of(Format format, Bytes file) {
  constexpr std::size_t kPngSignature = 8, kRiffHeader = 12;
  switch (format) {
    case Format::jpeg:
      return orientation_of_jpeg(file);
    case Format::png:
      return orientation_of_chunks(file, kPngSignature, "eXIf"sv, true);
    case Format::webp:
      return orientation_of_chunks(file, kRiffHeader, "EXIF"sv, false);
    case Format::tiff:
      return orientation_of_tiff(file);
    case Format::bmp:
    case Format::gif:
    case Format::heic:  // libheif has turned it
    case Format::avif:
    case Format::unknown:
      break;
  }
  return 1;
}

}  // namespace cputrain::datasets
