// HEVC by libde265, one picture at a time.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>

#include "core/casts.h"
#include "datasets/decode/byte_order.h"
#include "datasets/decode/heif/codecs.h"
#include "datasets/decode/heif/coded_picture.h"
#include "datasets/decode/heif/hevc_headers.h"

namespace cputrain::datasets {
namespace {

using Bytes = std::span<const std::uint8_t>;

int bytes_per_value(const de265_image* picture, int plane) {
  return hevc().de265_get_bits_per_pixel(picture, plane) > 8 ? 2 : 1;
}

/// Black: libde265 leaves out what a damaged picture does not have.
void fill_plane(std::uint8_t* plane, std::size_t bytes, int index, int bits) {
  const auto value = static_cast<std::uint16_t>(index == 0 ? 0 : 1 << (bits - 1));
  if (bits <= 8) {
    std::fill_n(plane, bytes, static_cast<std::uint8_t>(value));
  } else {
    std::fill_n(reinterpret_cast<std::uint16_t*>(plane), bytes / 2, value);
  }
}

/// Memory of a picture, of which libde265 reads a little past the end.
int give_planes(de265_decoder_context*, de265_image_spec* spec, de265_image* picture, void*) {
  constexpr std::size_t kPadding = 64;
  if (!take_coded_pixels(spec->width, spec->height)) return 0;
  const bool grey = spec->format == de265_image_format_mono8;
  const bool narrow =
      spec->format == de265_image_format_YUV420P8 || spec->format == de265_image_format_YUV422P8;
  const bool low = spec->format == de265_image_format_YUV420P8;
  std::array<std::uint8_t*, 3> planes{};
  std::array<int, 3> strides{};
  bool given = true;
  for (int i = 0; i < (grey ? 1 : 3); ++i) {
    const int width = i > 0 && narrow ? spec->width / 2 : spec->width;
    const int height = i > 0 && low ? spec->height / 2 : spec->height;
    const int aligned = (width + spec->alignment - 1) / spec->alignment * spec->alignment;
    strides[to_size(i)] = aligned * bytes_per_value(picture, i);
    const std::size_t bytes = to_size(strides[to_size(i)]) * to_size(height) + kPadding;
    const std::size_t whole = (bytes + kPadding - 1) / kPadding * kPadding;
    auto* plane = static_cast<std::uint8_t*>(std::aligned_alloc(kPadding, whole));
    planes[to_size(i)] = plane;
    given &= plane != nullptr;
    if (plane != nullptr) fill_plane(plane, whole, i, hevc().de265_get_bits_per_pixel(picture, i));
  }
  if (!given) {
    for (std::uint8_t* plane : planes) std::free(plane);
    return 0;
  }
  for (int i = 0; i < 3; ++i) {
    const auto at = to_size(i);
    hevc().de265_set_image_plane(picture, i, planes[at], strides[at], planes[at]);
  }
  return 1;
}

void free_planes(de265_decoder_context*, de265_image* picture, void*) {
  for (int i = 0; i < 3; ++i) std::free(hevc().de265_get_image_plane_user_data(picture, i));
}

class HevcDecoder {
 public:
  static constexpr heif_compression_format kFormat = heif_compression_HEVC;
  static constexpr const char* kName = "cputrain-hevc";

  HevcDecoder() : context_(hevc().de265_new_decoder()) {
    if (!context_) throw std::bad_alloc();
    de265_image_allocation memory{give_planes, free_planes};
    hevc().de265_set_image_allocation_functions(context_.get(), &memory, nullptr);
  }

  /// NAL units, each behind its length in four bytes.
  heif_error push(Bytes data) {
    constexpr std::size_t kLength = 4;
    const OrderedBytes numbers(data, false);
    for (std::size_t at = 0; at < data.size();) {
      const std::uint64_t length = numbers.at(at, kLength);
      if (!numbers.are_there(at, kLength) || !numbers.are_there(at + kLength, length)) {
        return {heif_error_Decoder_plugin_error, heif_suberror_End_of_data, "HEVC data end early"};
      }
      const heif_error error = push_nal(data.subspan(at + kLength, to_size(length)));
      if (error.code != heif_error_Ok) return error;
      at += kLength + to_size(length);
    }
    return kCodedOk;
  }

  heif_error decode(heif_image** image) {
    hevc().de265_flush_data(context_.get());
    for (int more = 1; more != 0;) {
      const de265_error error = hevc().de265_decode(context_.get(), &more);
      if (error == DE265_ERROR_OUT_OF_MEMORY) return kCodedTooLarge;
      if (error == DE265_ERROR_WAITING_FOR_INPUT_DATA) break;
      if (error != DE265_OK) return damaged_picture(hevc().de265_get_error_text(error));
      const de265_error damage = find_damage();
      if (damage != DE265_OK) return damaged_picture(hevc().de265_get_error_text(damage));
      const de265_image* picture = hevc().de265_get_next_picture(context_.get());
      if (picture != nullptr) return take(picture, image);
    }
    return damaged_picture("there is no image in its HEVC data");
  }

 private:
  struct Free {
    void operator()(de265_decoder_context* context) const { hevc().de265_free_decoder(context); }
  };

  heif_error push_nal(Bytes nal) {
    const auto head = read_nal_head(nal);
    if (!head || !head->base_layer) return kCodedOk;
    // A picture has at most 600 slices (H.265, A.4.1), and few parameters: libde265 keeps arrays
    // as large as the picture for each set of them.
    constexpr int kMostNals = 700, kMostSets = 16;
    sets_ += head->kind == NalKind::other ? 0 : 1;
    if (++nals_ > kMostNals || sets_ > kMostSets) return kCodedTooLarge;
    if (head->kind == NalKind::sequence) {
      const auto size = read_coded_size(nal);
      if (!size) return damaged_picture("damaged headers of HEVC");
      if (!may_take_coded_pixels(size->width, size->height)) return kCodedTooLarge;
    }
    const auto error =
        hevc().de265_push_NAL(context_.get(), nal.data(), to_int(nal.size()), 0, nullptr);
    return error == DE265_OK ? kCodedOk : damaged_picture(hevc().de265_get_error_text(error));
  }

  /// Its complaints are about pictures that it then shows in part, but for one: a remark about the
  /// picture that comes before its headers, as some cameras write it.
  de265_error find_damage() {
    while (true) {
      const de265_error complaint = hevc().de265_get_warning(context_.get());
      if (complaint != DE265_WARNING_SPS_MISSING_CANNOT_DECODE_SEI) return complaint;
    }
  }

  static heif_error take(const de265_image* decoded, heif_image** image) {
    CodedPicture picture{.width = hevc().de265_get_image_width(decoded, 0),
                         .height = hevc().de265_get_image_height(decoded, 0),
                         .bits = hevc().de265_get_bits_per_pixel(decoded, 0),
                         .primaries = hevc().de265_get_image_colour_primaries(decoded),
                         .transfer = hevc().de265_get_image_transfer_characteristics(decoded),
                         .matrix = hevc().de265_get_image_matrix_coefficients(decoded),
                         .full_range = hevc().de265_get_image_full_range_flag(decoded) != 0};
    const de265_chroma chroma = hevc().de265_get_chroma_format(decoded);
    const bool grey = chroma == de265_chroma_mono;
    picture.chroma = grey                         ? heif_chroma_monochrome
                     : chroma == de265_chroma_420 ? heif_chroma_420
                     : chroma == de265_chroma_422 ? heif_chroma_422
                                                  : heif_chroma_444;
    for (int i = 0; i < (grey ? 1 : 3); ++i) {
      int stride = 0;
      picture.planes[to_size(i)] = hevc().de265_get_image_plane(decoded, i, &stride);
      picture.strides[to_size(i)] = stride;
      const bool fits = hevc().de265_get_bits_per_pixel(decoded, i) == picture.bits &&
                        hevc().de265_get_image_width(decoded, i) == plane_width(picture, i) &&
                        hevc().de265_get_image_height(decoded, i) == plane_height(picture, i);
      if (!fits || picture.width < 1 || picture.height < 1) {
        return {heif_error_Unsupported_feature, heif_suberror_Unsupported_color_conversion,
                "its planes differ in bits or size"};
      }
    }
    return copy_picture(picture, image);
  }

  std::unique_ptr<de265_decoder_context, Free> context_;
  int nals_ = 0, sets_ = 0;
};

}  // namespace

const heif_decoder_plugin& hevc_decoder() {
  static const heif_decoder_plugin plugin = [] {
    hevc().de265_init();
    return plugin_of<HevcDecoder>();
  }();
  return plugin;
}

}  // namespace cputrain::datasets
