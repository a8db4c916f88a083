#include "datasets/pixels/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/casts.h"
#include "core/error.h"
#include "core/random/random.h"
#include "datasets/pixels/pixel_view.h"
#include "datasets/pixels/resize.h"

namespace cputrain::datasets {
namespace {

/// A number in [-reach, reach).
double around_zero(double reach, std::uint32_t word) {
  return reach * (2.0 * to_double(unit_float(word)) - 1.0);
}

/// Where the pixels of a changed image come from, but for their colours.
struct Placed {
  PixelMap map;
  Window window;
};

Placed place_pixels(data::Turn turn, const Change& change, Shape image) {
  PixelMap map = change.warp == Warp{} ? PixelMap{} : warp_map(change.warp, image);
  if (change.flip) map = then_turn(map, data::Turn::flip_horizontal, image);
  if (change.vflip) map = then_turn(map, data::Turn::flip_vertical, image);
  map = then_turn(map, change.turn, image);
  const int rows = change.crop_rows, columns = change.crop_columns;
  map = then_move(map, rows, columns);
  return {after_turn(turn, map, image),
          {std::max(0, -rows), std::min(image.height, image.height - rows), std::max(0, -columns),
           std::min(image.width, image.width - columns)}};
}

constexpr std::uint32_t kCropWords = 1000;  // the first try's; before it the other kinds'

/// As torchvision's RandomResizedCrop: an area and a ratio at a time until they fit, and else the
/// largest rectangle with the nearest ratio, in the centre.
Window choose_part(const data::Augment& augment, Shape kept, const RandomStream& stream) {
  constexpr std::uint32_t kTries = 10;
  const auto between = [](const Interval& reach, std::uint32_t word) {
    return reach.low + (reach.high - reach.low) * to_double(unit_float(word));
  };
  const Interval &area = augment.crop_area, &ratio = augment.crop_ratio;
  const Interval logarithms{std::log(ratio.low), std::log(ratio.high)};
  const double pixels = to_double(kept.height) * kept.width;
  for (std::uint32_t i = 0; i < kTries; ++i) {
    const auto words = stream.at(kCropWords + i);
    const double wanted = pixels * between(area, words[0]);
    const double shape = std::exp(between(logarithms, words[1]));
    const auto width = to_int(std::lround(std::sqrt(wanted * shape)));
    const auto height = to_int(std::lround(std::sqrt(wanted / shape)));
    if (width < 1 || width > kept.width || height < 1 || height > kept.height) continue;
    const auto free = [](int side, int part) {
      return static_cast<std::uint32_t>(side - part + 1);
    };
    const auto top = to_int(below(words[2], free(kept.height, height)));
    const auto left = to_int(below(words[3], free(kept.width, width)));
    return {top, top + height, left, left + width};
  }
  const double own = to_double(kept.width) / kept.height;
  const double nearest = std::clamp(own, ratio.low, ratio.high);
  const int width = own > nearest ? std::max(1, to_int(kept.height * nearest)) : kept.width;
  const int height = own < nearest ? std::max(1, to_int(kept.width / nearest)) : kept.height;
  const int top = (kept.height - height) / 2, left = (kept.width - width) / 2;
  return {top, top + height, left, left + width};
}

/// DeVries and Taylor, "Improved Regularization of Convolutional Neural Networks with Cutout"
/// (2017): about any pixel of the image, and cut off at its edges.
Window choose_square(int side, Shape image, const std::array<std::uint32_t, 4>& words) {
  const auto first = [side](int whole, std::uint32_t word) {
    return to_int(below(word, static_cast<std::uint32_t>(whole))) - side / 2;
  };
  const int top = first(image.height, words[0]), left = first(image.width, words[1]);
  return {std::max(0, top), std::min(image.height, top + side), std::max(0, left),
          std::min(image.width, left + side)};
}

void blacken(const Window& part, Shape image, std::span<std::uint8_t> rgb) {
  for (int y = part.top; y < part.bottom; ++y) {
    const auto first = (to_size(y) * to_size(image.width) + to_size(part.left)) * 3;
    std::fill_n(rgb.begin() + static_cast<std::ptrdiff_t>(first), (part.right - part.left) * 3,
                std::uint8_t{0});
  }
}

}  // namespace

// Every kind has words of its own, so that switching one on does not change what others draw.
Change choose_change(const data::Augment& augment, const KeptImages& images, std::uint64_t seed,
                     int epoch, std::uint32_t sample) {
  const Shape image = images.image;
  const RandomStream stream(seed, Purpose::augment, static_cast<std::uint32_t>(epoch), sample);
  const auto turns = stream.at(0), warps = stream.at(1), places = stream.at(2);
  Change change;
  if (augment.crop_part) change.part = choose_part(augment, images.kept(), stream);
  change.flip = augment.flip && below(turns[0], 2) == 1;
  change.vflip = augment.vflip && below(turns[1], 2) == 1;
  if (augment.six) change.turn = static_cast<data::Turn>(below(turns[2], data::kTurns));
  change.warp = {.rotate = around_zero(augment.rotate, warps[0]),
                 .shear = around_zero(augment.shear, warps[1]),
                 .shift_y = around_zero(augment.shift, places[0]) * image.height,
                 .shift_x = around_zero(augment.shift, places[1]) * image.width,
                 .zoom_y = 1 + around_zero(augment.zoom, warps[2]),
                 .zoom_x = 1 + around_zero(augment.zoom, warps[3])};
  const auto crops = static_cast<std::uint32_t>(2 * augment.crop + 1);
  change.crop_rows = to_int(below(places[2], crops)) - augment.crop;
  change.crop_columns = to_int(below(places[3], crops)) - augment.crop;
  const auto factor = [&, colours = stream.at(3)](double own, std::size_t i) {
    return 1 + around_zero(own > 0 ? own : augment.colour, colours[i]);
  };
  change.colour = {factor(augment.brightness, 0), factor(augment.contrast, 1),
                   factor(augment.saturation, 2)};
  change.rand = choose_rand_steps(augment.rand_steps, augment.rand_magnitude, stream);
  if (augment.cutout > 0) change.cutout = choose_square(augment.cutout, image, stream.at(4));
  return change;
}

void check_fits(const data::Augment& augment, Shape image) {
  if (augment.six && image.height != image.width) {
    fail(ExitCode::usage,
         fmt::format("--augment six needs square images, not {}x{} (two of its six are turns by 90 "
                     "degrees); use --augment flip or a square --image-size",
                     image.height, image.width));
  }
  if (augment.cutout >= std::min(image.height, image.width)) {
    fail(ExitCode::usage,
         fmt::format("--augment cutout:{0}: images of {1}x{2} have no more than {0} pixels a side "
                     "(nothing might be left of one); use a smaller number",
                     augment.cutout, image.height, image.width));
  }
  if (augment.crop >= std::min(image.height, image.width)) {
    fail(ExitCode::usage,
         fmt::format("--augment crop:{0}: images of {1}x{2} have no more than {0} pixels a side (a "
                     "crop could miss the image altogether); use a smaller number",
                     augment.crop, image.height, image.width));
  }
}

void change_image(const std::uint8_t* src, const KeptImages& images, data::Turn turn,
                  const Change& change, std::span<std::uint8_t> dst) {
  std::vector<std::uint8_t> part;
  if (change.part) {
    part.resize(images.image.size());
    resize_image(PixelView(src, images.kept().width, *change.part), images.image, images.resize,
                 part);
    src = part.data();
  }
  const Placed placed = place_pixels(turn, change, images.image);
  map_image(src, images.image, placed.map, placed.window, dst);
  apply(change.rand, images.image, dst);
  change_colour(dst, change.colour);
  blacken(change.cutout, images.image, dst);
}

void mirror_image(std::span<const std::uint8_t> src, Shape image, std::span<std::uint8_t> dst) {
  change_image(src.data(), image, data::Turn::none, {.flip = true}, dst);
}

compute::ImageMove move_of(std::uint32_t source, Shape image, data::Turn turn,
                           const Change& change) {
  const Placed placed = place_pixels(turn, change, image);
  compute::ImageMove move = as_move(placed.map, image, placed.window).value();
  move.source = source;
  return move;
}

}  // namespace cputrain::datasets
