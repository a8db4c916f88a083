#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/datasets/made_files.h"

namespace cputrain::datasets {

/// A grey TIFF of tiles of one size, `across` x `across` of them, all with these coded bytes.
struct TiledTiff {
  std::uint32_t side = 16, across = 1;
  std::uint16_t compression = 1;
  Bytes tile;
};
Bytes tiff_of(const TiledTiff&);

/// Where the numbers of bytes of strips or tiles stand in a classic TIFF of little-endian numbers.
struct PieceCounts {
  std::size_t at = 0;      ///< of the first
  std::size_t bytes = 0;   ///< of one
  std::size_t number = 0;  ///< 0 where there are none

  std::uint32_t of(const Bytes& tiff, std::size_t piece) const;
  /// The file with another count; the bytes of the piece stay where they are.
  Bytes with(Bytes tiff, std::size_t piece, std::uint32_t count) const;
};
PieceCounts piece_counts(const Bytes& tiff);

}  // namespace cputrain::datasets
