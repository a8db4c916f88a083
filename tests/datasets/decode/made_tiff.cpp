#include "tests/datasets/decode/made_tiff.h"

#include <array>

namespace cputrain::datasets {
namespace {

constexpr std::uint16_t kShort = 3, kLong = 4, kStripCounts = 279, kTileCounts = 325;

struct Entry {
  std::uint16_t tag = 0, type = kLong;
  std::uint32_t count = 1, value = 0;
};

void put(Bytes& to, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

std::uint32_t number_at(const Bytes& file, std::size_t at, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | file.at(at + i);
  return value;
}

}  // namespace

/// TIFF 6.0: header, tiles, their places and counts, and the directory at the end.
Bytes tiff_of(const TiledTiff& made) {
  const std::uint32_t tiles = made.across * made.across, sides = made.side * made.across;
  const auto bytes = static_cast<std::uint32_t>(made.tile.size());
  Bytes file = bytes_of("II*");
  put(file, 0, 5);
  for (std::uint32_t i = 0; i < tiles; ++i) {
    file.insert(file.end(), made.tile.begin(), made.tile.end());
  }
  if (file.size() % 2 != 0) file.push_back(0);
  const auto lists = static_cast<std::uint32_t>(file.size());
  for (std::uint32_t i = 0; i < tiles; ++i) put(file, 8 + i * bytes, 4);
  for (std::uint32_t i = 0; i < tiles; ++i) put(file, bytes, 4);
  const auto directory = static_cast<std::uint32_t>(file.size());
  const std::array<Entry, 10> entries{{
      {256, kLong, 1, sides},                       // width
      {257, kLong, 1, sides},                       // height
      {258, kShort, 1, 8},                          // bits
      {259, kShort, 1, made.compression},           //
      {262, kShort, 1, 1},                          // black is zero
      {277, kShort, 1, 1},                          // samples
      {322, kLong, 1, made.side},                   // of a tile
      {323, kLong, 1, made.side},                   //
      {324, kLong, tiles, tiles == 1 ? 8 : lists},  // places
      {kTileCounts, kLong, tiles, tiles == 1 ? bytes : lists + 4 * tiles},
  }};
  put(file, static_cast<std::uint32_t>(entries.size()), 2);
  for (const Entry& entry : entries) {
    put(file, entry.tag, 2);
    put(file, entry.type, 2);
    put(file, entry.count, 4);
    put(file, entry.value, 4);
  }
  put(file, 0, 4);
  for (std::size_t i = 0; i < 4; ++i) file[4 + i] = static_cast<std::uint8_t>(directory >> 8 * i);
  return file;
}

PieceCounts piece_counts(const Bytes& tiff) {
  if (tiff[0] != 'I' || tiff[2] != 42) return {};
  const std::size_t begin = number_at(tiff, 4, 4), entries = number_at(tiff, begin, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = begin + 2 + i * 12;
    const std::uint32_t tag = number_at(tiff, entry, 2);
    if (tag != kStripCounts && tag != kTileCounts) continue;
    const std::size_t bytes = number_at(tiff, entry + 2, 2) == kShort ? 2 : 4;
    const std::size_t number = number_at(tiff, entry + 4, 4);
    return {number * bytes <= 4 ? entry + 8 : number_at(tiff, entry + 8, 4), bytes, number};
  }
  return {};
}

std::uint32_t PieceCounts::of(const Bytes& tiff, std::size_t piece) const {
  return number_at(tiff, at + piece * bytes, bytes);
}

Bytes PieceCounts::with(Bytes tiff, std::size_t piece, std::uint32_t count) const {
  for (std::size_t i = 0; i < bytes; ++i) {
    tiff.at(at + piece * bytes + i) = static_cast<std::uint8_t>(count >> 8 * i);
  }
  return tiff;
}

}  // namespace cputrain::datasets
