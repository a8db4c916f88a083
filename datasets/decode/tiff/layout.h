#pragma once

#include <tiffio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "datasets/decode/decoders.h"

namespace cputrain::datasets {

/// How the first page of a TIFF is stored: in strips or tiles ("pieces"), each coded by itself.
struct TiffLayout {
  std::uint32_t width = 0, height = 0;
  std::uint16_t bits = 1, samples = 1, extra_samples = 0, sample_format = SAMPLEFORMAT_UINT;
  std::uint16_t compression = COMPRESSION_NONE, photometric = PHOTOMETRIC_MINISBLACK;
  bool planes = false;  ///< each sample has pieces of its own
  std::uint32_t pieces = 0, pieces_across = 0, pieces_down = 0;
  std::uint32_t piece_width = 0, piece_height = 0;
  std::uint64_t piece_bytes = 0;  ///< decoded

  /// Where a piece lies, and what of it shows: edges may go on beyond the image.
  struct Place {
    std::uint32_t plane = 0, left = 0, top = 0, columns = 0, rows = 0;
  };
  Place place_of(std::uint32_t piece) const;

  bool is_fax() const;
  bool is_deflate() const {
    return compression == COMPRESSION_ADOBE_DEFLATE || compression == COMPRESSION_DEFLATE;
  }
  std::uint64_t planes_stored() const { return planes ? samples : 1; }
  std::uint64_t pieces_of_plane() const { return std::uint64_t{pieces_across} * pieces_down; }
};

TiffLayout layout_of(TIFF*);

/// Why a page of this layout is not read, if it is not: nothing of its pixels is looked at.
std::optional<Decoded> refused_layout(const TiffLayout&);

/// Where pieces lie outside of the file or on each other: bytes that are decoded many times would
/// be many times the work of the file.
std::optional<Decoded> refused_pieces(TIFF*, const TiffLayout&, std::span<const std::uint8_t> file);

/// The coded bytes of a piece that refused_pieces() had nothing against.
std::span<const std::uint8_t> bytes_of_piece(TIFF*, std::uint32_t piece,
                                             std::span<const std::uint8_t> file);

}  // namespace cputrain::datasets
