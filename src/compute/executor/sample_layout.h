#pragma once

#include <cstddef>

#include "core/shape.h"

namespace cputrain::compute {

/// How the numbers of one sample's activation lie in memory: channels in blocks, in each block the
/// image row by row, in each pixel the block's channels ("nChw16c"). A block of 1 is plain
/// channels-first, and for a flat vector simply the vector; one block for all channels is
/// channels-last. Channels that only fill the last block are zero. Samples follow each other
/// without gaps.
struct SampleLayout {
  Shape shape;
  int block = 1;

  std::size_t blocks() const {
    return (static_cast<std::size_t>(shape.channels) + static_cast<std::size_t>(block) - 1) /
           static_cast<std::size_t>(block);
  }
  /// Numbers of one sample, filling included.
  std::size_t size() const { return blocks() * pixels() * static_cast<std::size_t>(block); }
  bool padded() const { return size() != shape.size(); }

  /// Where the number lies that has position `canonical` in the order height, width, channel.
  std::size_t position(std::size_t canonical) const {
    const auto channels = static_cast<std::size_t>(shape.channels);
    const auto width = static_cast<std::size_t>(block);
    const std::size_t pixel = canonical / channels, channel = canonical % channels;
    return (channel / width * pixels() + pixel) * width + channel % width;
  }

 private:
  std::size_t pixels() const {
    return static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width);
  }
};

}  // namespace cputrain::compute
