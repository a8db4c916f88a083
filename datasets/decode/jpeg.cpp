#include "core/casts.h"
#include "datasets/decode/jpeg_stream.h"

namespace cputrain::datasets {
namespace {

/// Fills `rgb` (height * width * 3 bytes); `row` has width * 4 bytes for images in four inks.
bool read_pixels(JpegStreams& streams, std::uint8_t* rgb, std::uint8_t* row) {
  jpeg_decompress_struct& info = streams.info;
  const bool inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  const bool inverted = info.saw_Adobe_marker != 0;
  const std::size_t width = info.image_width;
  info.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  return read_rows(
      streams, info.image_height,
      [=](JDIMENSION y) { return inks ? row : rgb + std::size_t{3} * width * y; },
      [=](JDIMENSION y) {
        if (inks) rgb_of_inks(row, width, inverted, rgb + std::size_t{3} * width * y);
      });
}

}  // namespace

Decoded decode_jpeg(std::span<const std::uint8_t> file, DecodingBudget::Claim& claim) {
  JpegStreams streams;
  if (!streams.create() || !streams.read_header(file)) return streams.failure();
  const std::int64_t width = streams.info.image_width, height = streams.info.image_height;
  if (auto refusal = refused_size(width, height)) return *std::move(refusal);
  if (auto refusal = streams.refused_scans(file)) return *std::move(refusal);
  claim.grow(streams.working_bytes());
  Decoded decoded;
  decoded.image = black_image(width, height, claim);
  std::vector<std::uint8_t> row(streams.info.num_components == 4 ? to_size(width) * 4 : 0);
  if (!read_pixels(streams, decoded.image.rgb.data(), row.data())) return streams.failure();
  if (streams.is_truncated()) return truncated();
  decoded.result.warned = !streams.ends_clean();
  return decoded;
}

}  // namespace cputrain::datasets
