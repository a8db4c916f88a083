#pragma once

#include <libheif/heif.h>
#include <libheif/heif_plugin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "datasets/decode/limits.h"

/// What the two decoders of coded pictures share. libheif would start threads of its own for each
/// picture, bounds no codec's memory, and shows what a damaged HEVC picture leaves unwritten. So
/// these decoders are given to it.
namespace cputrain::datasets {

/// A decoder of HEVC on libde265, and one of AV1 on dav1d.
const heif_decoder_plugin& hevc_decoder();
const heif_decoder_plugin& av1_decoder();

/// Begins a file on this thread: how many pixels its pictures may have, which are tiles, alpha, and
/// some that are never shown. libheif hands nothing of the file to a decoder, and decodes on the
/// thread that asks for it: so the count lies with the thread.
void allow_coded_pixels(std::int64_t pixels);
/// Whether so large a picture may still be decoded.
bool may_take_coded_pixels(std::int64_t width, std::int64_t height);
/// The same, and counts it. A small picture has a least price, since setting up has one.
bool take_coded_pixels(std::int64_t width, std::int64_t height);

constexpr heif_error kCodedOk{heif_error_Ok, heif_suberror_Unspecified, "ok"};
constexpr heif_error kCodedTooLarge{heif_error_Memory_allocation_error,
                                    heif_suberror_Security_limit_exceeded,
                                    "its coded data have more pixels than its header says"};

constexpr heif_error damaged_picture(const char* words) {
  return {heif_error_Decoder_plugin_error, heif_suberror_Unspecified, words};
}

/// A decoded picture where its decoder has it.
struct CodedPicture {
  int width = 0, height = 0;
  int bits = 8;  ///< of a value, which has two bytes if there are more than eight
  heif_chroma chroma = heif_chroma_420;
  std::array<const std::uint8_t*, 3> planes{};  ///< one of them where the chroma is monochrome
  std::array<std::ptrdiff_t, 3> strides{};      ///< in bytes
  /// How colours are coded, in the numbers of ITU-T H.273.
  int primaries = 2, transfer = 2, matrix = 2;
  bool full_range = false;
};

/// What libheif calls. A decoder takes all bytes of a picture at once and then gives it:
/// `heif_error push(span)`, `heif_error decode(heif_image**)`; `kFormat` and `kName` say which it
/// is.
template <class Decoder>
heif_decoder_plugin plugin_of() {
  const auto name = [] { return Decoder::kName; };
  const auto supports = [](heif_compression_format format) {
    constexpr int kAboveThoseOfLibheif = 1000;
    return format == Decoder::kFormat ? kAboveThoseOfLibheif : 0;
  };
  const auto make = [](void** decoder) {
    *decoder = new Decoder;
    return kCodedOk;
  };
  const auto destroy = [](void* decoder) { delete static_cast<Decoder*>(decoder); };
  const auto push = [](void* decoder, const void* data, std::size_t size) {
    if (size > kMaxFileBytes) return kCodedTooLarge;  // parts of a file may lie on each other
    return static_cast<Decoder*>(decoder)->push({static_cast<const std::uint8_t*>(data), size});
  };
  const auto decode = [](void* decoder, heif_image** image) {
    return static_cast<Decoder*>(decoder)->decode(image);
  };
  const auto be_strict = [](void*, int) {};  // both always are
  return {3,       name, nullptr, nullptr,   supports,      make,
          destroy, push, decode,  be_strict, Decoder::kName};
}

/// Columns and rows of a plane of colours, of which 4:2:0 and 4:2:2 have fewer.
int plane_width(const CodedPicture&, int plane);
int plane_height(const CodedPicture&, int plane);

/// Copies it into an image of libheif's, and counts it as a tile.
heif_error copy_picture(const CodedPicture&, heif_image** image);

/// Whether the pictures of the file, which are tiles if there are several, are enough for an image
/// of this size: libheif gives out what no tile has written, and refuses only those outside.
bool coded_pictures_cover(std::int64_t width, std::int64_t height);

}  // namespace cputrain::datasets
