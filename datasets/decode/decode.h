#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "datasets/decode/decoding_budget.h"

namespace cputrain::datasets {

/// What a file is by its first bytes; its name is never asked.
enum class Format { jpeg, png, bmp, gif, webp, tiff, heic, avif, unknown };

/// Pixels as they are stored, RGB, rows from the top.
struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  ///< height * width * 3
};

struct Decoded {
  data::ReadResult result;
  Image image;  ///< empty unless result.status is ok
  data::StoredAs stored{};
  int orientation = 1;  ///< how to turn it (orientation.h)
};

Format format_of(std::span<const std::uint8_t> file);

/// Decodes a JPEG, PNG, BMP or TIFF, the first image of a GIF or WebP, or the primary one of a HEIC
/// or AVIF, within limits.h. Never
/// throws for bad content; what is wrong is in the result. The outcome, pixels included, is a
/// function of the file's bytes alone. Waits until the claim has room for it, and the claim, which
/// counts the file's own bytes already, must outlive the image.
Decoded decode(std::span<const std::uint8_t> file, DecodingBudget::Claim&);

/// The same with a budget of its own: for one image at a time.
Decoded decode(std::span<const std::uint8_t> file);

}  // namespace cputrain::datasets
