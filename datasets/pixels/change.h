#pragma once

#include <cstdint>
#include <span>

#include "core/shape.h"
#include "data/augment.h"
#include "data/turn.h"
#include "datasets/pixels/colour.h"
#include "datasets/pixels/pixel_map.h"
#include "datasets/pixels/rand_augment.h"

namespace cputrain::datasets {

/// What happens to one sample in one epoch, in the order in which it stands here.
struct Change {
  Warp warp{};
  bool flip = false, vflip = false;
  data::Turn turn = data::Turn::none;   ///< by `six`
  int crop_rows = 0, crop_columns = 0;  ///< where the crop lies, from the image's own place
  RandSteps rand{};
  ColourChange colour{};
  Window cutout{};  ///< becomes black
  bool operator==(const Change&) const = default;
};

/// f(seed, epoch, sample).
Change choose_change(const data::Augment&, Shape image, std::uint64_t seed, int epoch,
                     std::uint32_t sample);

/// Error(usage) where the augmentation cannot be done with images of this shape.
void check_fits(const data::Augment&, Shape image);

/// Writes the image, first turned as its sample is and then changed, in one pass over its pixels
/// and one over its colours.
void change_image(const std::uint8_t* src, Shape image, data::Turn, const Change&,
                  std::span<std::uint8_t> dst);

/// The same as a move of the bytes of `source`, for changes of an augmentation that
/// data::only_moves().
compute::ImageMove move_of(std::uint32_t source, Shape image, data::Turn, const Change&);

}  // namespace cputrain::datasets
