#pragma once

#include <tiffio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "datasets/decode/decoders.h"

namespace cputrain::datasets {

/// The file as libtiff reads it, and libtiff's messages.
struct TiffSource {
  std::span<const std::uint8_t> file;
  std::uint64_t at = 0;
  char error[160] = {};     ///< the first
  bool data_ended = false;  ///< an error or a warning was about that
  int complaints = 0;       ///< errors and warnings

  /// Why libtiff gave up: its own words where it has any.
  Decoded failure(const std::string& otherwise) const;
};

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, CloseTiff>;

/// Null where libtiff does not open it. The source must outlive it.
Tiff open_tiff(TiffSource&);

}  // namespace cputrain::datasets
