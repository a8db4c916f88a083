#pragma once

#include <cstddef>
#include <cstdint>

/// What an image file may cost at most; anything beyond is refused before memory or time is spent
/// on it. The numbers of pixels are those at which Pillow warns of a decompression bomb. Work is
/// counted, not timed, so that every machine refuses the same files; the aim is 2 s on an idle
/// core.
namespace cputrain::datasets {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
constexpr std::int64_t kMaxSide = 16384;
constexpr std::int64_t kMaxPixels = 89'478'485;
constexpr int kMaxJpegScans = 256;  ///< a few bytes per scan can cost a pass over the whole image
/// Samples that all scans of a JPEG touch together (in a TIFF: of all its JPEG streams). An image
/// of kMaxPixels in the usual ten progressive scans touches 1.25e9 without subsampling. A scan that
/// holds next to nothing costs libjpeg 0.4 to 0.6 ns per sample (2.1.5, one core of an EPYC), so
/// the limit is about 1.5 s; what a scan holds is bounded by kMaxFileBytes.
constexpr std::int64_t kMaxScanSamples = 2'500'000'000;
/// What a component of a scan counts at least: it has tables to set up, however small the image is.
constexpr std::int64_t kLeastScanSamples = 2048;
/// Arithmetic coding makes samples out of hardly any bits, at 40 ns each: the price of so many
/// scans.
constexpr std::int64_t kArithmeticScans = 64;
/// What one decoder may take in one piece: libjpeg's pools; the strips of a TIFF together.
constexpr std::size_t kMaxDecoderBytes = std::size_t{1} << 30;
/// Bytes in decoding over all threads of a process together, beside one image (decoding_budget.h).
constexpr std::size_t kDecodingBytes = std::size_t{1} << 30;
constexpr std::size_t kMaxFiles = 50'000'000;
constexpr std::size_t kMaxClasses = 100'000;
/// What an archive may hold: paths, and bytes in all its files together, beside those free for all
/// so many times its own. Images hardly shrink, and what shrinks a thousand times is a bomb.
constexpr std::size_t kMaxArchivePath = 4096;
constexpr std::size_t kMaxArchiveFolders = 256;  ///< one in the other
constexpr std::uint64_t kMaxUnpackedTimes = 100;
constexpr std::uint64_t kFreeUnpackedBytes = std::uint64_t{256} << 20;
constexpr std::size_t kMaxShards = 100'000;

/// For sides of at least 1.
constexpr bool exceeds_limits(std::int64_t width, std::int64_t height) {
  return width > kMaxSide || height > kMaxSide || width * height > kMaxPixels;
}

}  // namespace cputrain::datasets
