// Windows bitmaps and those of OS/2, as Microsoft documents them (BITMAPCOREHEADER,
// BITMAPINFOHEADER, BITMAPV4HEADER, BITMAPV5HEADER). Read here and not by stb_image, whose palette
// begins as whatever its stack holds.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include "core/casts.h"
#include "datasets/decode/decoders.h"
#include "datasets/decode/little_endian.h"

namespace cputrain::datasets {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kFileHeader = 14;
constexpr std::size_t kCoreHeader = 12;   // OS/2 1: sides of 16 bits, palette entries of 3 bytes
constexpr std::size_t kInfoHeader = 40;   // the shortest one with a compression
constexpr std::size_t kMasksInside = 52;  // from here on the masks are part of the header
constexpr std::size_t kOs2Header = 64;    // has other meanings for compressions, and no masks
constexpr std::int64_t kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3, kMasksWithAlpha = 6;

struct Header {
  std::size_t bytes = 0;  // the information header's size, with which it begins
  std::int64_t first_row = 0;
  std::int64_t width = 0, height = 0;
  bool from_the_top = false;
  std::int64_t planes = 0, bits = 0, compression = kPlain;

  std::size_t row_bytes() const { return to_size((width * bits + 31) / 32 * 4); }
  /// From the first row to the last pixel: what the last row is padded with may be missing.
  std::int64_t pixel_bytes() const {
    return static_cast<std::int64_t>(row_bytes()) * (height - 1) + (width * bits + 7) / 8;
  }
};

/// `file` has at least the first 26 bytes, or 34 with a newer header.
Header read_header(Bytes file) {
  Header header;
  header.bytes = little_endian_32(file, 14);
  header.first_row = little_endian_32(file, 10);
  if (header.bytes == kCoreHeader) {
    header.width = little_endian_16(file, 18);
    header.height = little_endian_16(file, 20);
    header.planes = little_endian_16(file, 22);
    header.bits = little_endian_16(file, 24);
    return header;
  }
  header.width = static_cast<std::int32_t>(little_endian_32(file, 18));
  const std::int64_t height = static_cast<std::int32_t>(little_endian_32(file, 22));
  header.height = std::abs(height);
  header.from_the_top = height < 0;
  header.planes = little_endian_16(file, 26);
  header.bits = little_endian_16(file, 28);
  header.compression = little_endian_32(file, 30);
  return header;
}

bool has_masks(const Header& header) {
  return header.compression == kMasks || header.compression == kMasksWithAlpha;
}

/// What cannot be read although the file may be whole.
std::optional<Decoded> refused_kind(const Header& header) {
  const auto unsupported = [](const std::string& what) {
    return refused(data::ReadStatus::unsupported, "a BMP " + what + "; convert it to PNG");
  };
  if (header.planes != 1) return refused(data::ReadStatus::not_an_image, "a BMP of several planes");
  if (header.compression == kRuns8 || header.compression == kRuns4) {
    return unsupported("with run-length coding");
  }
  if (header.compression != kPlain && (!has_masks(header) || header.bytes == kOs2Header)) {
    return unsupported("of compression " + std::to_string(header.compression));
  }
  const std::int64_t bits = header.bits;
  const bool known = bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32;
  if (!known) return unsupported("of " + std::to_string(bits) + " bits per pixel");
  if (has_masks(header) && bits != 16 && bits != 32) {
    return refused(data::ReadStatus::not_an_image,
                   "colour masks with " + std::to_string(bits) + " bits per pixel");
  }
  return {};
}

Bytes row_of(const Header& header, Bytes file, std::int64_t y) {
  const std::int64_t stored = header.from_the_top ? y : header.height - 1 - y;
  const std::size_t bytes = header.row_bytes();
  const std::size_t begin = to_size(header.first_row) + to_size(stored) * bytes;
  return file.subspan(begin, std::min(bytes, file.size() - begin));
}

/// Between header and pixels lies the palette, and nothing else: so many of its colours are there,
/// whatever the header claims. Blue, green, red and, in newer files, a fourth byte.
Bytes palette_of(const Header& header, Bytes file) {
  const std::size_t begin = kFileHeader + header.bytes;
  return file.subspan(begin, to_size(header.first_row) - begin);
}

/// False where a pixel names a colour that is not there.
bool fill_indexed(const Header& header, Bytes file, std::uint8_t* rgb) {
  const Bytes palette = palette_of(header, file);
  const std::size_t entry = header.bytes == kCoreHeader ? 3 : 4;
  const std::size_t colours = palette.size() / entry;
  const auto bits = static_cast<unsigned>(header.bits);
  const unsigned in_a_byte = 8 / bits, largest = (1u << bits) - 1;
  for (std::int64_t y = 0; y < header.height; ++y) {
    const Bytes row = row_of(header, file, y);
    for (std::size_t x = 0; x < to_size(header.width); ++x, rgb += 3) {
      const unsigned shift = 8 - bits - bits * static_cast<unsigned>(x % in_a_byte);
      const std::size_t index = row[x / in_a_byte] >> shift & largest;
      if (index >= colours) return false;
      for (std::size_t c = 0; c < 3; ++c) rgb[c] = palette[index * entry + 2 - c];
    }
  }
  return true;
}

/// Where in a pixel's word one channel lies.
class Channel {
 public:
  explicit Channel(std::uint32_t mask)
      : mask_(mask), lowest_(mask == 0 ? 0 : std::countr_zero(mask)), bits_(std::popcount(mask)) {}

  bool valid() const { return mask_ != 0 && mask_ >> lowest_ == (std::uint64_t{1} << bits_) - 1; }

  /// The upper 8 bits, or fewer repeated until there are 8: 5 bits abcde become abcdeabc.
  std::uint8_t of(std::uint32_t word) const {
    std::uint32_t value = (word & mask_) >> lowest_;
    if (bits_ >= 8) return static_cast<std::uint8_t>(value >> (bits_ - 8));
    int have = bits_;
    for (; have < 8; have += bits_) value = value << bits_ | (word & mask_) >> lowest_;
    return static_cast<std::uint8_t>(value >> (have - 8));
  }

 private:
  std::uint32_t mask_;
  int lowest_, bits_;
};

/// Red, green, blue. Masks stand in newer headers, else right behind the header.
std::array<Channel, 3> channels_of(const Header& header, Bytes file) {
  if (has_masks(header)) {
    constexpr std::size_t kAt = kFileHeader + kInfoHeader;
    return {Channel(little_endian_32(file, kAt)), Channel(little_endian_32(file, kAt + 4)),
            Channel(little_endian_32(file, kAt + 8))};
  }
  if (header.bits == 16) return {Channel(0x7C00), Channel(0x03E0), Channel(0x001F)};
  return {Channel(0xFF0000), Channel(0x00FF00), Channel(0x0000FF)};
}

/// False where the masks make no sense.
bool fill_words(const Header& header, Bytes file, std::uint8_t* rgb) {
  const std::array<Channel, 3> channels = channels_of(header, file);
  for (const Channel& channel : channels) {
    if (!channel.valid()) return false;
  }
  for (std::int64_t y = 0; y < header.height; ++y) {
    const Bytes row = row_of(header, file, y);
    for (std::size_t x = 0; x < to_size(header.width); ++x, rgb += 3) {
      const std::uint32_t word = header.bits == 16
                                     ? static_cast<std::uint32_t>(little_endian_16(row, 2 * x))
                                     : little_endian_32(row, 4 * x);
      for (std::size_t c = 0; c < 3; ++c) rgb[c] = channels[c].of(word);
    }
  }
  return true;
}

void fill_24(const Header& header, Bytes file, std::uint8_t* rgb) {
  for (std::int64_t y = 0; y < header.height; ++y) {
    const Bytes row = row_of(header, file, y);
    for (std::size_t x = 0; x < to_size(header.width); ++x, rgb += 3) {
      for (std::size_t c = 0; c < 3; ++c) rgb[c] = row[3 * x + 2 - c];
    }
  }
}

/// Bytes before the pixels that are no palette.
std::size_t head_bytes(const Header& header) {
  const bool masks_follow = has_masks(header) && header.bytes < kMasksInside;
  return kFileHeader + header.bytes + (masks_follow ? 12 : 0);
}

}  // namespace

Decoded decode_bmp(std::span<const std::uint8_t> file, DecodingBudget::Claim& claim) {
  if (file.size() < (file[14] == kCoreHeader ? 26u : 34u)) return truncated();
  const Header header = read_header(file);
  if (auto refusal = refused_size(header.width, header.height)) return *std::move(refusal);
  if (auto refusal = refused_kind(header)) return *std::move(refusal);
  if (header.first_row + header.pixel_bytes() > static_cast<std::int64_t>(file.size())) {
    return truncated();
  }
  if (header.first_row < static_cast<std::int64_t>(head_bytes(header))) {
    return refused(data::ReadStatus::not_an_image, "its pixels begin inside its header");
  }
  Decoded decoded;
  decoded.image = black_image(header.width, header.height, claim);
  std::uint8_t* const rgb = decoded.image.rgb.data();
  if (header.bits <= 8 && !fill_indexed(header, file, rgb)) {
    return refused(data::ReadStatus::not_an_image, "it names colours behind its palette");
  }
  if (header.bits == 24) fill_24(header, file, rgb);
  if ((header.bits == 16 || header.bits == 32) && !fill_words(header, file, rgb)) {
    return refused(data::ReadStatus::not_an_image, "its colour masks make no sense");
  }
  decoded.stored.alpha = header.bits == 32;
  return decoded;
}

}  // namespace cputrain::datasets
