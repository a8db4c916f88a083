// AV1 by dav1d, one picture at a time.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/casts.h"
#include "datasets/decode/heif/codecs.h"
#include "datasets/decode/heif/coded_picture.h"
#include "datasets/decode/limits.h"

namespace cputrain::datasets {
namespace {

heif_chroma chroma_of(Dav1dPixelLayout layout) {
  switch (layout) {
    case DAV1D_PIXEL_LAYOUT_I400:
      return heif_chroma_monochrome;
    case DAV1D_PIXEL_LAYOUT_I420:
      return heif_chroma_420;
    case DAV1D_PIXEL_LAYOUT_I422:
      return heif_chroma_422;
    default:
      return heif_chroma_444;
  }
}

class Av1Decoder {
 public:
  static constexpr heif_compression_format kFormat = heif_compression_AV1;
  static constexpr const char* kName = "cputrain-av1";

  Av1Decoder() {
    Dav1dSettings settings;
    av1().dav1d_default_settings(&settings);
    settings.n_threads = 1;
    settings.max_frame_delay = 1;
    settings.all_layers = 0;
    settings.frame_size_limit = static_cast<unsigned>(kMaxPixels);
    settings.allocator = {this, give_planes, free_planes};
    settings.logger.callback = nullptr;
    if (av1().dav1d_open(&context_, &settings) != 0) throw std::bad_alloc();
  }
  ~Av1Decoder() {
    av1().dav1d_data_unref(&data_);
    av1().dav1d_close(&context_);
  }
  Av1Decoder(const Av1Decoder&) = delete;
  Av1Decoder& operator=(const Av1Decoder&) = delete;

  heif_error push(std::span<const std::uint8_t> bytes) {
    if (bytes.empty()) return damaged_picture("there are no AV1 data");
    if (data_.sz > 0) return damaged_picture("AV1 data in two pieces");
    std::uint8_t* to = av1().dav1d_data_create(&data_, bytes.size());
    if (to == nullptr) return kCodedTooLarge;
    std::memcpy(to, bytes.data(), bytes.size());
    return kCodedOk;
  }

  heif_error decode(heif_image** image) {
    Dav1dPicture shown{};
    const int result = find_picture(shown);
    if (too_large_) {
      av1().dav1d_picture_unref(&shown);
      return kCodedTooLarge;
    }
    if (result != 0) return damaged_picture("damaged AV1 data");
    CodedPicture picture{.width = shown.p.w,
                         .height = shown.p.h,
                         .bits = shown.p.bpc,
                         .chroma = chroma_of(shown.p.layout),
                         .primaries = static_cast<int>(shown.seq_hdr->pri),
                         .transfer = static_cast<int>(shown.seq_hdr->trc),
                         .matrix = static_cast<int>(shown.seq_hdr->mtrx),
                         .full_range = shown.seq_hdr->color_range != 0};
    for (std::size_t i = 0; i < 3; ++i) {
      picture.planes[i] = static_cast<const std::uint8_t*>(shown.data[i]);
      picture.strides[i] = shown.stride[i > 0 ? 1 : 0];
    }
    const heif_error error = copy_picture(picture, image);
    av1().dav1d_picture_unref(&shown);
    return error;
  }

 private:
  /// The first picture that is shown; 0, or the number of an error.
  int find_picture(Dav1dPicture& shown) {
    for (bool ended = false; true;) {
      if (data_.sz > 0) {
        const int sent = av1().dav1d_send_data(context_, &data_);
        if (sent < 0 && sent != DAV1D_ERR(EAGAIN)) return sent;
      }
      const int got = av1().dav1d_get_picture(context_, &shown);
      if (got != DAV1D_ERR(EAGAIN) || ended) return got;
      ended = data_.sz == 0;  // what it has read may come out with the next call
    }
  }

  /// Sides are multiples of 128, and some bytes behind each plane may be read (dav1d/picture.h).
  static int give_planes(Dav1dPicture* picture, void* self) {
    constexpr std::size_t kSide = 128, kPadding = DAV1D_PICTURE_ALIGNMENT;
    auto& decoder = *static_cast<Av1Decoder*>(self);
    decoder.too_large_ |= !take_coded_pixels(picture->p.w, picture->p.h);
    if (decoder.too_large_) return DAV1D_ERR(ENOMEM);
    const heif_chroma chroma = chroma_of(picture->p.layout);
    const auto whole = [](int side) { return (to_size(side) + kSide - 1) / kSide * kSide; };
    const std::size_t value = picture->p.bpc > 8 ? 2 : 1;
    const std::size_t width = whole(picture->p.w) * value, height = whole(picture->p.h);
    const bool narrow = chroma == heif_chroma_420 || chroma == heif_chroma_422;
    const bool grey = chroma == heif_chroma_monochrome;
    const std::size_t stride = grey ? 0 : width / (narrow ? 2 : 1);
    const std::size_t luma = width * height + kPadding;
    const std::size_t colour =
        grey ? 0 : stride * (chroma == heif_chroma_420 ? height / 2 : height) + kPadding;
    auto* memory = static_cast<std::uint8_t*>(std::aligned_alloc(kPadding, luma + 2 * colour));
    if (memory == nullptr) return DAV1D_ERR(ENOMEM);
    std::memset(memory, 0, luma + 2 * colour);
    picture->allocator_data = memory;
    picture->data[0] = memory;
    picture->data[1] = grey ? nullptr : memory + luma;
    picture->data[2] = grey ? nullptr : memory + luma + colour;
    picture->stride[0] = static_cast<std::ptrdiff_t>(width);
    picture->stride[1] = static_cast<std::ptrdiff_t>(stride);
    return 0;
  }

  static void free_planes(Dav1dPicture* picture, void*) { std::free(picture->allocator_data); }

  Dav1dContext* context_ = nullptr;
  Dav1dData data_{};
  bool too_large_ = false;
};

}  // namespace

const heif_decoder_plugin& av1_decoder() {
  static const heif_decoder_plugin plugin = plugin_of<Av1Decoder>();
  return plugin;
}

}  // namespace cputrain::datasets
