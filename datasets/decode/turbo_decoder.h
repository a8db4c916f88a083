#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cputrain::datasets {

/// libjpeg-turbo's own way to decompress: TurboJPEG as its benchmark tjbench calls it, whole
/// images to RGB with the standard settings (accurate DCT, smooth chroma upsampling), handle and
/// memory used again for every image. The limit of decode_jpeg(), with the same pixels.
class TurboDecoder {
 public:
  TurboDecoder();

  /// The pixels, valid until the next call; empty where the codec has anything to complain of.
  std::span<const std::uint8_t> decode(std::span<const std::uint8_t> jpeg);

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Close> handle_;
  std::vector<std::uint8_t> pixels_;  // grows to the largest image
};

}  // namespace cputrain::datasets
