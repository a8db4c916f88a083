#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace cputrain {

/// What a file is by its first bytes; its name is never asked.
enum class Format { jpeg, png, bmp, gif, unknown };

/// Pixels as they are stored, RGB, rows from the top. EXIF orientation is ignored, as Keras' and
/// Pillow's loaders do.
struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  ///< height * width * 3
};

struct Decoded {
  ReadResult result;
  Picture picture;  ///< empty unless result.status is ok
};

Format format_of(std::span<const std::uint8_t> file);

/// Whether the ending of a path names this format ("jpg" and "jpeg" are one), any case.
bool has_extension_of(std::string_view path, Format);

/// Decodes JPEG, PNG, BMP or the first frame of a GIF within limits.h. Never throws for bad
/// content; what is wrong is in the result.
Decoded decode(std::span<const std::uint8_t> file);

/// libjpeg (islow DCT, smooth chroma upsampling: the settings of Pillow). CMYK and YCCK become RGB,
/// grey becomes three equal channels. A file whose data end before the picture is complete is
/// `truncated`; other complaints of libjpeg set `warned`.
Decoded decode_jpeg(std::span<const std::uint8_t> file);

/// PNG, BMP and GIF through stb_image; alpha is dropped, 16 bits become 8; transparent pixels of a
/// GIF are black.
Decoded decode_with_stb(std::span<const std::uint8_t> file, Format);

}  // namespace cputrain
