#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "data/resize.h"

/// Layout of a packed file; numbers are little-endian.
///
///     header     80 bytes, the fields of PackedHeader
///     entries    of each image 12 bytes: label, part (0 training, 1 validation, 2 test),
///                CRC-32 of its pixels, 4 bytes each
///     names      of the classes, then of the images, each followed by a zero byte
///     zeros      up to `pixels_at`
///     pixels     height * width * 3 bytes an image, in the order of the entries
///
/// `check` is the CRC-32 of everything between itself and `pixels_at`.
namespace cputrain::datasets {

struct PackedHeader {
  std::array<std::uint8_t, 8> magic;
  std::uint32_t version, check;
  std::uint32_t height, width, channels, form;  ///< PackedForm
  std::uint64_t images, classes, name_bytes, pixels_at, file_bytes;
  std::uint64_t source;  ///< fingerprint of the data set that was packed
};

constexpr std::array<std::uint8_t, 8> kPackedMagic{0x89, 'C', 'T', 'P', 'A', 'C', 'K', '\n'};
constexpr std::uint32_t kPackedVersion = 3;
/// Versions that are read, too: the first turned no image, both knew two ways to resize.
constexpr std::uint32_t kBeforeExif = 1, kBeforeFit = 2;
constexpr std::size_t kPackedHeaderBytes = 80, kPackedEntryBytes = 12;
constexpr std::size_t kPackedChecked = 16;  ///< what `check` covers begins here
constexpr std::size_t kPackedAlign = 4096;

/// How images came to be as they are, as the number `form`. Of version 3: bits 0 to 3 the way to
/// resize, 4 to 7 EXIF orientation (0 where no image had one, 1 applied, 2 ignored), 8 to 11 the
/// fit, from 12 on its part. Before: bit 0 `nearest` (else `bilinear_plain`), then EXIF
/// orientation.
struct PackedForm {
  data::Resizing resize{};
  std::optional<data::Exif> exif{};

  std::uint32_t number() const;
  /// Nothing for a number that no program of that version writes.
  static std::optional<PackedForm> of(std::uint32_t number, std::uint32_t version);
};

template <class T>
T little_endian(std::span<const std::uint8_t> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) value = static_cast<T>(value << 8 | bytes[at + i]);
  return value;
}

template <class T>
void put_little_endian(std::span<std::uint8_t> bytes, std::size_t at,
                       std::type_identity_t<T> value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

/// Calls field(member, position) for each number of the header.
template <class Header, class Field>
void for_each_field(Header& h, const Field& field) {
  field(h.version, 8), field(h.check, 12), field(h.height, 16), field(h.width, 20);
  field(h.channels, 24), field(h.form, 28), field(h.images, 32), field(h.classes, 40);
  field(h.name_bytes, 48), field(h.pixels_at, 56), field(h.file_bytes, 64), field(h.source, 72);
}

}  // namespace cputrain::datasets
