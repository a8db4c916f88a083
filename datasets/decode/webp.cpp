#include <webp/decode.h>

#include <algorithm>
#include <string_view>

#include "core/casts.h"
#include "datasets/decode/decoders.h"
#include "datasets/decode/little_endian.h"

namespace cputrain::datasets {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kRiffHeader = 12, kChunkHeader = 8;
constexpr std::size_t kCanvasHeader = 10, kFrameHeader = 16;

/// The first image of a file: on a canvas where the file has one, in one chunk of its own coding.
struct Container {
  std::int64_t canvas_width = 0, canvas_height = 0;  // 0: as large as the image
  std::int64_t left = 0, top = 0;
  std::int64_t frame_width = 0, frame_height = 0;  // only in an animation
  bool animated = false;
  bool alpha = false;
  Bytes image;
  bool complete = true;

  /// Whether an image of this size fits the headers around it.
  bool holds(std::int64_t width, std::int64_t height) const {
    if (!animated) return width == canvas_width && height == canvas_height;
    return width == frame_width && height == frame_height && left + width <= canvas_width &&
           top + height <= canvas_height;
  }
};

/// Lossy images begin with the length of their first partition, which must be whole (RFC 6386,
/// 9.1). libwebp calls others damaged.
bool has_first_partition(Bytes lossy) {
  constexpr std::size_t kFrameTag = 10;
  return lossy.size() >= kFrameTag &&
         (little_endian_24(lossy, 0) >> 5) <= static_cast<std::int64_t>(lossy.size() - kFrameTag);
}

/// RIFF chunks: name, length, data, up to an even length. Alpha (ALPH) is a chunk of its own beside
/// lossy images, and is not decoded. The first frame (ANMF) holds chunks, too: the walk goes on
/// inside it, and ends with it.
Container read_container(Bytes file) {
  Container found;
  const std::size_t claimed = std::size_t{little_endian_32(file, 4)} + 8;
  found.complete = claimed <= file.size();
  Bytes chunks = file.first(std::min(claimed, file.size()));
  for (std::size_t at = kRiffHeader; at + kChunkHeader <= chunks.size();) {
    const std::string_view name(reinterpret_cast<const char*>(chunks.data() + at), 4);
    const std::size_t length = little_endian_32(chunks, at + 4);
    at += kChunkHeader;
    const Bytes data = chunks.subspan(at, std::min(length, chunks.size() - at));
    found.complete &= data.size() == length;
    if (name == "VP8 " || name == "VP8L") {
      found.image = data;
      found.complete &= name == "VP8L" || has_first_partition(data);
      return found;
    }
    if (name == "VP8X" && data.size() >= kCanvasHeader) {
      constexpr std::uint8_t kAlpha = 0x10;
      found.alpha = (data[0] & kAlpha) != 0;
      found.canvas_width = little_endian_24(data, 4) + 1;
      found.canvas_height = little_endian_24(data, 7) + 1;
    }
    if (name == "ANMF" && data.size() >= kFrameHeader) {
      found.animated = true;
      found.left = 2 * little_endian_24(data, 0);
      found.top = 2 * little_endian_24(data, 3);
      found.frame_width = little_endian_24(data, 6) + 1;
      found.frame_height = little_endian_24(data, 9) + 1;
      chunks = chunks.first(at + data.size());
      at += kFrameHeader;
      continue;
    }
    at += std::min(length + length % 2, chunks.size() - at);
  }
  return found;
}

/// What libwebp allocates at most beside the pixels. Lossless: the whole image in four bytes per
/// pixel, and for each group of Huffman codes tables of up to 21 kB; the smallest area with its own
/// group is 4x4, and there are 65,536 groups at most. Lossy: rows of macroblocks with margins, of
/// which 1 kB per column of 16 pixels and 1 MB are more than enough.
std::size_t working_bytes(const WebPBitstreamFeatures& features) {
  constexpr std::size_t kLossless = 2, kGroupBytes = 21'000, kMostGroups = 65'536;
  const auto width = to_size(features.width);
  const std::size_t pixels = width * to_size(features.height);
  if (features.format != kLossless) return (width / 16 + 1) * 1024 + (std::size_t{1} << 20);
  return pixels * 4 + std::min(pixels / 16 + 1, kMostGroups) * kGroupBytes;
}

Decoded failure(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return refused(data::ReadStatus::too_large, "libwebp has no memory for it");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return refused(data::ReadStatus::unsupported, "a kind of WebP that libwebp does not read");
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return truncated();
    default:
      return refused(data::ReadStatus::not_an_image, "damaged WebP data");
  }
}

}  // namespace

Decoded decode_webp(std::span<const std::uint8_t> file, DecodingBudget::Claim& claim) {
  Container container = read_container(file);
  const bool has_canvas = container.canvas_width > 0;
  if (has_canvas) {
    auto refusal = refused_size(container.canvas_width, container.canvas_height);
    if (refusal) return *std::move(refusal);
  }
  if (!container.complete) return truncated();
  if (container.image.empty())
    return refused(data::ReadStatus::not_an_image, "there is no image in it");
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) {
    return refused(data::ReadStatus::unsupported,
                   "another libwebp than this program was built with");
  }
  const auto status =
      WebPGetFeatures(container.image.data(), container.image.size(), &config.input);
  if (status != VP8_STATUS_OK) return failure(status);
  const std::int64_t width = config.input.width, height = config.input.height;
  if (auto refusal = refused_size(width, height)) return *std::move(refusal);
  if (!has_canvas) container.canvas_width = width, container.canvas_height = height;
  if (!container.holds(width, height)) {
    return refused(data::ReadStatus::not_an_image,
                   "its first image has another size than its frame or canvas");
  }
  claim.grow(working_bytes(config.input));
  Decoded decoded;
  decoded.image = black_image(container.canvas_width, container.canvas_height, claim);
  const std::int64_t stride = container.canvas_width * 3;
  const auto offset = to_size(container.top * stride + container.left * 3);
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = decoded.image.rgb.data() + offset;
  config.output.u.RGBA.stride = to_int(stride);
  config.output.u.RGBA.size = decoded.image.rgb.size() - offset;
  const auto result = WebPDecode(container.image.data(), container.image.size(), &config);
  if (result != VP8_STATUS_OK) return failure(result);
  decoded.stored.alpha = container.alpha || config.input.has_alpha != 0;
  return decoded;
}

std::string webp_library() {
  const int version = WebPGetDecoderVersion();
  return "libwebp " + std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 0xFF) +
         "." + std::to_string(version & 0xFF);
}

}  // namespace cputrain::datasets
