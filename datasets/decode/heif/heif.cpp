#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/casts.h"
#include "datasets/decode/byte_order.h"
#include "datasets/decode/decoders.h"
#include "datasets/decode/heif/codecs.h"
#include "datasets/decode/heif/coded_picture.h"
#include "datasets/decode/limits.h"

namespace cputrain::datasets {
namespace {

using Bytes = std::span<const std::uint8_t>;

template <auto free>
struct FreeHeif {
  template <class T>
  void operator()(T* object) const {
    (heif().*free)(object);
  }
};
using HeifContext = std::unique_ptr<heif_context, FreeHeif<&HeifCalls::heif_context_free>>;
using HeifHandle =
    std::unique_ptr<heif_image_handle, FreeHeif<&HeifCalls::heif_image_handle_release>>;
using HeifImage = std::unique_ptr<heif_image, FreeHeif<&HeifCalls::heif_image_release>>;
using HeifOptions =
    std::unique_ptr<heif_decoding_options, FreeHeif<&HeifCalls::heif_decoding_options_free>>;

/// Whether a box that has pixels or says where they lie ends behind the file. Boxes have their
/// length first, and their name (ISO/IEC 14496-12, 4.2): a length of 1 stands for one of 64 bits
/// behind the name, 0 for the rest of the file. Cameras append what is no box, which ends the walk.
bool ends_early(Bytes file) {
  const OrderedBytes numbers(file, false);
  for (std::uint64_t at = 0; numbers.are_there(at, 8);) {
    std::uint64_t length = numbers.at(at, 4);
    const std::string_view name(reinterpret_cast<const char*>(file.data() + at + 4), 4);
    if (length == 0) return false;
    if (length == 1) length = numbers.at(at + 8, 8);
    const bool known = name == "ftyp" || name == "meta" || name == "mdat" || name == "moov";
    if (length > file.size() - at) return known;
    if (length < 8) return false;  // libheif says what is wrong
    at += length;
  }
  return false;
}

/// Bounds what libheif itself allocates: a file may say another size for the whole of its tiles
/// than for the image. Before version 1.19 it has a limit for sides alone, which must be below it:
/// the whole may then be a square of the longest side (kMaxSide), which no claim knows of.
void limit_pixels(heif_context* context, std::int64_t side, std::int64_t pixels) {
#if LIBHEIF_HAVE_VERSION(1, 19, 0)
  heif_security_limits* limits = heif().heif_context_get_security_limits(context);
  limits->max_image_size_pixels = static_cast<std::uint64_t>(pixels);
  limits->max_memory_block_size = kMaxDecoderBytes;
  static_cast<void>(side);
#else
  heif().heif_context_set_maximum_image_size_limit(context, to_int(side) + 1);
  static_cast<void>(pixels);
#endif
}

Decoded heif_failure(const heif_error& error) {
  if (error.subcode == heif_suberror_End_of_data) return truncated();
  std::string words = error.message;
  while (words.ends_with('\n')) words.pop_back();
  if (error.subcode == heif_suberror_Nonexisting_item_referenced) {
    return refused(
        data::ReadStatus::unsupported,
        "its primary image is missing, or neither of HEVC nor of AV1; convert it to JPEG");
  }
  switch (error.code) {
    case heif_error_Memory_allocation_error:
      return refused(data::ReadStatus::too_large, words);
    case heif_error_Unsupported_filetype:
    case heif_error_Unsupported_feature:
      return refused(data::ReadStatus::unsupported,
                     "a kind of HEIF of which only HEVC and AV1 are read (libheif: " + words +
                         "); convert it to JPEG");
    default:
      return refused(data::ReadStatus::not_an_image, words);
  }
}

/// What is allocated for a pixel at most, of 8 bits and of more: planes of the decoder and what it
/// keeps of blocks, libheif's copies before and after colours are converted and turned.
std::size_t working_bytes(std::int64_t pixels, int bits) {
  constexpr std::size_t kPixel = 16, kDeepPixel = 28, kMargin = std::size_t{1} << 20;
  return to_size(pixels) * (bits > 8 ? kDeepPixel : kPixel) + kMargin;
}

/// Copies RGB of libheif's, whose size must be what the file claims.
Decoded copy_pixels(const heif_image* image, std::int64_t width, std::int64_t height,
                    DecodingBudget::Claim& claim) {
  int stride = 0;
  const std::uint8_t* from =
      heif().heif_image_get_plane_readonly(image, heif_channel_interleaved, &stride);
  if (from == nullptr || heif().heif_image_get_width(image, heif_channel_interleaved) != width ||
      heif().heif_image_get_height(image, heif_channel_interleaved) != height ||
      heif().heif_image_get_bits_per_pixel_range(image, heif_channel_interleaved) != 8) {
    return refused(data::ReadStatus::not_an_image, "its size is not what its header says");
  }
  Decoded decoded;
  decoded.image = black_image(width, height, claim);
  const std::size_t row = to_size(width) * 3;
  for (std::size_t at = 0; at < decoded.image.rgb.size(); at += row, from += stride) {
    std::copy_n(from, row, decoded.image.rgb.data() + at);
  }
  return decoded;
}

Decoded decode_primary(heif_context* context, const heif_image_handle* handle,
                       DecodingBudget::Claim& claim) {
  const std::int64_t width = heif().heif_image_handle_get_width(handle);
  const std::int64_t height = heif().heif_image_handle_get_height(handle);
  const std::int64_t coded_width = heif().heif_image_handle_get_ispe_width(handle);
  const std::int64_t coded_height = heif().heif_image_handle_get_ispe_height(handle);
  if (auto refusal = refused_size(width, height)) return *std::move(refusal);
  if (auto refusal = refused_size(coded_width, coded_height)) return *std::move(refusal);
  const int bits = std::max(8, heif().heif_image_handle_get_luma_bits_per_pixel(handle));
  // Tiles and codes are larger than the image by a margin, and alpha is as large again.
  constexpr std::int64_t kTimes = 3, kMarginPixels = std::int64_t{1} << 22;
  const std::int64_t pixels = coded_width * coded_height;
  allow_coded_pixels(kTimes * pixels + kMarginPixels);
  limit_pixels(context, std::max(coded_width, coded_height), kTimes * pixels + kMarginPixels);
  claim.grow(working_bytes(pixels, bits));
  const HeifOptions options(heif().heif_decoding_options_alloc());
  options->convert_hdr_to_8bit = 1;
  heif_image* image = nullptr;
  const heif_error error = heif().heif_decode_image(handle, &image, heif_colorspace_RGB,
                                                    heif_chroma_interleaved_RGB, options.get());
  const HeifImage owned(image);
  if (error.code != heif_error_Ok) return heif_failure(error);
  if (!coded_pictures_cover(coded_width, coded_height)) {
    return refused(data::ReadStatus::not_an_image,
                   "its tiles do not cover the size that its header says");
  }
  Decoded decoded = copy_pixels(image, width, height, claim);
  decoded.stored.alpha = heif().heif_image_handle_has_alpha_channel(handle) != 0;
  return decoded;
}

/// Once in a process, before the first file.
void register_decoders() {
  static const bool registered = [] {
    heif().heif_register_decoder_plugin(&hevc_decoder());
    heif().heif_register_decoder_plugin(&av1_decoder());
    return true;
  }();
  static_cast<void>(registered);
}

}  // namespace

Decoded decode_heif(Bytes file, DecodingBudget::Claim& claim) {
  if (ends_early(file)) return truncated();
  if (!why_no_codecs().empty()) {
    return refused(data::ReadStatus::unsupported,
                   std::string(format_of(file) == Format::avif ? "AVIF" : "HEIC") + " needs " +
                       why_no_codecs() + ", or convert the image to JPEG");
  }
  register_decoders();
  const HeifContext context(heif().heif_context_alloc());
  heif().heif_context_set_max_decoding_threads(context.get(), 0);
  limit_pixels(context.get(), kMaxSide, kMaxPixels);
  claim.grow(file.size());  // libheif copies the data of a picture
  heif_error error = heif().heif_context_read_from_memory_without_copy(context.get(), file.data(),
                                                                       file.size(), nullptr);
  if (error.code != heif_error_Ok) return heif_failure(error);
  heif_image_handle* handle = nullptr;
  error = heif().heif_context_get_primary_image_handle(context.get(), &handle);
  const HeifHandle owned(handle);
  if (error.code != heif_error_Ok) return heif_failure(error);
  return decode_primary(context.get(), handle, claim);
}

}  // namespace cputrain::datasets
