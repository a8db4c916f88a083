#include "datasets/decode/heif/coded_picture.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/casts.h"
#include "datasets/decode/heif/codecs.h"
#include "datasets/decode/limits.h"

namespace cputrain::datasets {
namespace {

/// A file on its way.
struct CodedFile {
  std::int64_t pixels_left = 0;
  std::int64_t tile_width = 0, tile_height = 0, tiles = 0;  ///< as large as the first one
};
thread_local CodedFile coded_file;

constexpr std::int64_t kLeastPixels = 4096;

struct FreeProfile {
  void operator()(heif_color_profile_nclx* profile) const {
    heif().heif_nclx_color_profile_free(profile);
  }
};

/// A file may say how its colours are coded, too, and libheif prefers that. Numbers that it does
/// not know stay what they are without any.
void set_colours(const CodedPicture& picture, heif_image* image) {
  const std::unique_ptr<heif_color_profile_nclx, FreeProfile> profile(
      heif().heif_nclx_color_profile_alloc());
  if (!profile) return;
  const auto word = [](int number) { return static_cast<std::uint16_t>(number); };
  heif().heif_nclx_color_profile_set_color_primaries(profile.get(), word(picture.primaries));
  heif().heif_nclx_color_profile_set_transfer_characteristics(profile.get(),
                                                              word(picture.transfer));
  heif().heif_nclx_color_profile_set_matrix_coefficients(profile.get(), word(picture.matrix));
  profile->full_range_flag = picture.full_range ? 1 : 0;
  heif().heif_image_set_nclx_color_profile(image, profile.get());
}

heif_error copy_plane(const CodedPicture& picture, int plane, heif_image* image) {
  constexpr std::array<heif_channel, 3> kChannels{heif_channel_Y, heif_channel_Cb, heif_channel_Cr};
  const heif_channel channel = kChannels[to_size(plane)];
  const int width = plane_width(picture, plane), height = plane_height(picture, plane);
  const heif_error error = heif().heif_image_add_plane(image, channel, width, height, picture.bits);
  if (error.code != heif_error_Ok) return error;
  int stride = 0;
  std::uint8_t* to = heif().heif_image_get_plane(image, channel, &stride);
  if (to == nullptr) return damaged_picture("libheif gives no memory for a plane");
  const std::uint8_t* from = picture.planes[to_size(plane)];
  const std::size_t bytes = to_size(width) * (picture.bits > 8 ? 2 : 1);
  for (int row = 0; row < height; ++row) {
    std::memcpy(to, from, bytes);
    to += stride;
    from += picture.strides[to_size(plane)];
  }
  return kCodedOk;
}

}  // namespace

void allow_coded_pixels(std::int64_t pixels) { coded_file = {pixels}; }

bool may_take_coded_pixels(std::int64_t width, std::int64_t height) {
  return width >= 1 && height >= 1 && !exceeds_limits(width, height) &&
         std::max(width * height, kLeastPixels) <= coded_file.pixels_left;
}

bool take_coded_pixels(std::int64_t width, std::int64_t height) {
  if (!may_take_coded_pixels(width, height)) return false;
  coded_file.pixels_left -= std::max(width * height, kLeastPixels);
  return true;
}

int plane_width(const CodedPicture& picture, int plane) {
  const bool halved = picture.chroma == heif_chroma_420 || picture.chroma == heif_chroma_422;
  return plane > 0 && halved ? (picture.width + 1) / 2 : picture.width;
}

int plane_height(const CodedPicture& picture, int plane) {
  return plane > 0 && picture.chroma == heif_chroma_420 ? (picture.height + 1) / 2 : picture.height;
}

heif_error copy_picture(const CodedPicture& picture, heif_image** image) {
  const bool grey = picture.chroma == heif_chroma_monochrome;
  heif_image* made = nullptr;
  heif_error error = heif().heif_image_create(
      picture.width, picture.height, grey ? heif_colorspace_monochrome : heif_colorspace_YCbCr,
      picture.chroma, &made);
  for (int plane = 0; error.code == heif_error_Ok && plane < (grey ? 1 : 3); ++plane) {
    error = copy_plane(picture, plane, made);
  }
  if (error.code != heif_error_Ok) {
    heif().heif_image_release(made);
    return error;
  }
  set_colours(picture, made);
  if (coded_file.tiles == 0) {
    coded_file.tile_width = picture.width, coded_file.tile_height = picture.height;
  }
  coded_file.tiles +=
      picture.width == coded_file.tile_width && picture.height == coded_file.tile_height;
  *image = made;
  return kCodedOk;
}

bool coded_pictures_cover(std::int64_t width, std::int64_t height) {
  const auto& [left, tile_width, tile_height, tiles] = coded_file;
  if (tiles == 0) return true;  // decoded by libheif itself
  const std::int64_t columns = (width + tile_width - 1) / tile_width;
  return columns * ((height + tile_height - 1) / tile_height) <= tiles;
}

}  // namespace cputrain::datasets
