#pragma once

#include <cstdint>
#include <type_traits>

#include "core/host_device.h"

namespace cputrain::cuda {

/// Maps lie as images, rows, columns, channels (NHWC); the channels of a position are filled up to
/// a multiple of this many with numbers that stay zero, so that kernels move 16 bytes at a time in
/// every precision.
inline constexpr int kChannelBlock = 8;

/// Where two pixels of an image share a position, each has so many.
inline constexpr int kPixelsOfPair = 2, kChannelsOfPixel = kChannelBlock / kPixelsOfPair;

CPUTRAIN_HOST_DEVICE constexpr int padded_channels(int channels) {
  return (channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock;
}

/// Where a row begins in an array whose rows have so many numbers. Rows and columns are counted
/// with `int`, numbers of a whole array with 64 bits.
CPUTRAIN_HOST_DEVICE constexpr std::int64_t offset_of_row(std::int64_t row, std::int64_t columns) {
  return row * columns;
}

/// ceil(a / b)
template <class T>
CPUTRAIN_HOST_DEVICE constexpr T pieces(T a, std::type_identity_t<T> b) {
  return (a + b - 1) / b;
}

/// The first of `count` steps, or windows, that a slice of them has: slices differ by one.
CPUTRAIN_HOST_DEVICE constexpr int slice_begin(int count, int slice, int slices) {
  return static_cast<int>(offset_of_row(count, slice) / slices);
}

/// One image's map as it is stored: `channels` is a multiple of kChannelBlock.
struct MapShape {
  int height = 1, width = 1, channels = kChannelBlock;

  CPUTRAIN_HOST_DEVICE constexpr std::int64_t size() const {
    return offset_of_row(height * width, channels);
  }
};

/// Chunks of 16 bytes that a map of all images, or weights, may have, and with them positions: 32
/// GiB. Kernels count them with `int`, and threads of the last block, or tile, count on behind them
/// by fewer than 4096.
inline constexpr int kMostChunks = 0x7fffffff - 4095;

/// Products take a row and a column as one number, 15 bits and a sign each.
inline constexpr int kLargestSide = 1 << 14;

/// A square window of `size` slides over src with `stride`, from `top` rows and `left` columns
/// outside of it on: window (p, q) covers rows p * stride - top + 0 .. size - 1 of src. What lies
/// outside of src is zero to a convolution and is left out by a pool, unless a max pool sees zeros
/// there. Dense layers are convolutions of size 1 of a 1 x 1 map.
///
/// A position of src may have two `pixels` side by side, with half of its channels each. `size` and
/// `stride`, an even one then, count pixels; `left` counts positions: window (p, q) covers whole
/// ones from q * stride / pixels - left on. Weights of a pixel behind the last one are padding.
struct WindowShape {
  int images = 0;
  MapShape src, dst;
  int size = 1, stride = 1, top = 0, left = 0;
  bool sees_zeros = false;
  int pixels = 1;

  /// Windows of all images.
  CPUTRAIN_HOST_DEVICE constexpr int windows() const { return images * dst.height * dst.width; }
  /// Positions of all images' src.
  CPUTRAIN_HOST_DEVICE constexpr int positions() const { return images * src.height * src.width; }
  /// Positions of src in a row of a window.
  CPUTRAIN_HOST_DEVICE constexpr int columns() const { return pieces(size, pixels); }
  /// Numbers of src that a window covers: of a kernel's weights for one output channel, too.
  CPUTRAIN_HOST_DEVICE constexpr int taps() const { return size * columns() * src.channels; }
  /// Numbers of all images' src and dst, and of a convolution's weights.
  constexpr std::int64_t inputs() const { return offset_of_row(positions(), src.channels); }
  constexpr std::int64_t outputs() const { return offset_of_row(windows(), dst.channels); }
  constexpr std::int64_t weights() const { return offset_of_row(dst.channels, taps()); }
};

}  // namespace cputrain::cuda
