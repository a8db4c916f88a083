#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/shape.h"
#include "data/augment.h"
#include "data/resize.h"
#include "datasets/pixels/colour.h"
#include "datasets/pixels/pixel_map.h"
#include "datasets/pixels/rand_augment.h"

namespace cputrain::datasets {

/// What happens to one sample in one epoch, in the order in which it stands here.
struct Change {
  std::optional<Window> part{};  ///< cut from the image as it is kept, brought to the image's size
  Warp warp{};
  bool flip = false, vflip = false;
  data::Turn turn = data::Turn::none;   ///< by `six`
  int crop_rows = 0, crop_columns = 0;  ///< where the crop lies, from the image's own place
  RandSteps rand{};
  ColourChange colour{};
  Window cutout{};  ///< becomes black
  bool operator==(const Change&) const = default;
};

/// How images lie before they are changed.
struct KeptImages {
  Shape image;                                   ///< as the network is given them
  int larger = 1;                                ///< they are kept at so many times its sides
  data::Resize resize = data::Resize::bilinear;  ///< brings a part of one to the image's size

  // NOLINTNEXTLINE(google-explicit-constructor): mostly they are kept as they are given
  KeptImages(Shape shape, int times = 1, data::Resize way = data::Resize::bilinear)
      : image(shape), larger(times), resize(way) {}
  Shape kept() const { return {image.height * larger, image.width * larger, image.channels}; }
};

/// f(seed, epoch, sample).
Change choose_change(const data::Augment&, const KeptImages&, std::uint64_t seed, int epoch,
                     std::uint32_t sample);

/// Error(usage) where the augmentation cannot be done with images of this shape.
void check_fits(const data::Augment&, Shape image);

/// Writes the image: its part, where one is cut, turned as its sample is and then changed, in one
/// pass over its pixels and one over its colours.
void change_image(const std::uint8_t* src, const KeptImages&, data::Turn, const Change&,
                  std::span<std::uint8_t> dst);

/// Left and right swapped.
void mirror_image(std::span<const std::uint8_t> src, Shape, std::span<std::uint8_t> dst);

/// The same as a move of the bytes of `source`, for changes of an augmentation that
/// data::only_moves().
compute::ImageMove move_of(std::uint32_t source, Shape image, data::Turn, const Change&);

}  // namespace cputrain::datasets
