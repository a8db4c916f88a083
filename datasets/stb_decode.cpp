#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "datasets/decode.h"
#include "datasets/limits.h"
#include "datasets/outline.h"

namespace {

/// The largest block that the picture being decoded may ask for. stb_image 2.27 inflates a PNG
/// without asking how much it will be and has no parameter for a limit, hence the variable.
thread_local std::size_t largest_block = 0;

void* limited_allocate(std::size_t bytes) {
  return bytes <= largest_block ? std::malloc(bytes) : nullptr;
}
void* limited_reallocate(void* block, std::size_t bytes) {
  return bytes <= largest_block ? std::realloc(block, bytes) : nullptr;
}

}  // namespace

#define STBI_MALLOC(size) limited_allocate(size)
#define STBI_REALLOC(block, size) limited_reallocate(block, size)
#define STBI_FREE(block) std::free(block)
#define STBI_MAX_DIMENSIONS 16384
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_ONLY_GIF
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

namespace cputrain {
namespace {

static_assert(STBI_MAX_DIMENSIONS == kMaxSide);

struct FreePixels {
  void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
};

/// Call only after stb_image failed on this thread. Its reasons are a few words each, and none at
/// all for a GIF without a picture.
ReadResult failure() {
  const std::string words = stbi_failure_reason();
  for (const std::string_view kind : {"BMP RLE", "BMP JPEG/PNG", "unknown BMP", "bad bpp"}) {
    if (words == kind) return {ReadStatus::unsupported, words};
  }
  if (words == "outofmem" || words == "too large") return {ReadStatus::too_large, words};
  return {ReadStatus::not_an_image, words.empty() ? "there is no picture in it" : words};
}

}  // namespace

Decoded decode_with_stb(std::span<const std::uint8_t> file, Format format) {
  const Outline outline = outline_of(file, format);
  if (outline.width > 0 && outline.height > 0 && exceeds_limits(outline.width, outline.height)) {
    return {{ReadStatus::too_large,
             std::to_string(outline.width) + "x" + std::to_string(outline.height)},
            {}};
  }
  if (!outline.valid) return {{ReadStatus::not_an_image, outline.problem}, {}};
  if (!outline.complete) return {{ReadStatus::truncated, outline.problem}, {}};
  if (outline.width < 1 || outline.height < 1) {
    return {{ReadStatus::not_an_image, "a side of the picture is 0"}, {}};
  }
  // Compressed data in a buffer that doubles; four channels of 16 bits; and room for any overhead.
  const auto pixels_claimed = static_cast<std::size_t>(outline.width * outline.height);
  largest_block =
      std::min(kMaxDecoderBytes, 2 * file.size() + 32 * pixels_claimed + (std::size_t{1} << 20));
  int width = 0, height = 0, channels = 0;
  const std::unique_ptr<stbi_uc, FreePixels> pixels(stbi_load_from_memory(
      file.data(), static_cast<int>(file.size()), &width, &height, &channels, 3));
  if (!pixels) return {failure(), {}};
  Decoded decoded;
  decoded.picture = {width, height, {}};
  decoded.picture.rgb.assign(pixels.get(), pixels.get() + static_cast<std::size_t>(width) *
                                                              static_cast<std::size_t>(height) * 3);
  return decoded;
}

}  // namespace cputrain
