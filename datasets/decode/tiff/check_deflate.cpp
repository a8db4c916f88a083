#include "datasets/decode/tiff/check_deflate.h"

#include <zlib.h>

#include <array>

namespace cputrain::datasets {
namespace {

DeflateStream result_of(int state, std::uint64_t held, std::uint64_t bytes) {
  if (state == Z_STREAM_END) {
    return held < bytes ? DeflateStream::ends_early : DeflateStream::whole;
  }
  if (state == Z_OK) return DeflateStream::whole;  // and more than was asked for
  return state == Z_BUF_ERROR ? DeflateStream::ends_early : DeflateStream::damaged;
}

}  // namespace

DeflateStream check_deflate(std::span<const std::uint8_t> stream, std::uint64_t bytes,
                            std::uint64_t most) {
  z_stream zlib{};
  if (inflateInit(&zlib) != Z_OK) return DeflateStream::damaged;
  zlib.next_in = const_cast<Bytef*>(stream.data());
  zlib.avail_in = static_cast<uInt>(stream.size());
  std::array<Bytef, 65536> thrown_away;
  int state = Z_OK;
  while (state == Z_OK && zlib.total_out <= most) {
    zlib.next_out = thrown_away.data();
    zlib.avail_out = static_cast<uInt>(thrown_away.size());
    state = inflate(&zlib, Z_NO_FLUSH);
  }
  const std::uint64_t held = zlib.total_out;
  inflateEnd(&zlib);
  return result_of(state, held, bytes);
}

}  // namespace cputrain::datasets
