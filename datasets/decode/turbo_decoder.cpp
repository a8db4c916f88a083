#include "datasets/decode/turbo_decoder.h"

#include <turbojpeg.h>

#include <algorithm>

#include "core/casts.h"
#include "core/error.h"
#include "datasets/decode/limits.h"

namespace cputrain::datasets {

void TurboDecoder::Close::operator()(void* handle) const { tjDestroy(handle); }

TurboDecoder::TurboDecoder() : handle_(tjInitDecompress()) {
  if (!handle_) {
    fail(ExitCode::internal, "TurboJPEG cannot start (it limits decoding); is memory short?");
  }
}

std::span<const std::uint8_t> TurboDecoder::decode(std::span<const std::uint8_t> jpeg) {
  int width = 0, height = 0, subsampling = 0, colours = 0;
  const auto bytes = static_cast<unsigned long>(jpeg.size());
  if (tjDecompressHeader3(handle_.get(), jpeg.data(), bytes, &width, &height, &subsampling,
                          &colours) != 0 ||
      exceeds_limits(width, height)) {
    return {};
  }
  const std::size_t size = to_size(width) * to_size(height) * 3;
  pixels_.resize(std::max(pixels_.size(), size));
  if (tjDecompress2(handle_.get(), jpeg.data(), bytes, pixels_.data(), width, 0, height, TJPF_RGB,
                    0) != 0) {
    return {};
  }
  return std::span(pixels_).first(size);
}

}  // namespace cputrain::datasets
