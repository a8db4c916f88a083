#pragma once

#include <cstddef>
#include <cstdint>

/// What a picture file may cost at most; anything beyond is refused before memory is spent on it.
/// The numbers of pixels are those at which Pillow warns of a decompression bomb.
namespace cputrain {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
constexpr std::int64_t kMaxSide = 16384;
constexpr std::int64_t kMaxPixels = 89'478'485;
constexpr int kMaxJpegScans = 256;  ///< a few bytes a scan can cost a pass over the whole picture
constexpr std::size_t kMaxDecoderBytes = std::size_t{1} << 30;  ///< libjpeg's pools; one stb block
constexpr std::size_t kMaxFiles = 50'000'000;
constexpr std::size_t kMaxClasses = 100'000;

/// For sides of at least 1.
constexpr bool exceeds_limits(std::int64_t width, std::int64_t height) {
  return width > kMaxSide || height > kMaxSide || width * height > kMaxPixels;
}

}  // namespace cputrain
