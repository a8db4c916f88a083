#include "datasets/pixels/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/random.h"

namespace cputrain::datasets {
namespace {

/// A number in [-reach, reach).
double around_zero(double reach, std::uint32_t word) {
  return reach * (2.0 * static_cast<double>(unit_float(word)) - 1.0);
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

/// DeVries and Taylor, "Improved Regularization of Convolutional Neural Networks with Cutout"
/// (2017): about any pixel of the image, and cut off at its edges.
Window choose_square(int side, Shape image, const std::array<std::uint32_t, 4>& words) {
  const auto first = [side](int whole, std::uint32_t word) {
    return static_cast<int>(below(word, static_cast<std::uint32_t>(whole))) - side / 2;
  };
  const int top = first(image.height, words[0]), left = first(image.width, words[1]);
  return {std::max(0, top), std::min(image.height, top + side), std::max(0, left),
          std::min(image.width, left + side)};
}

void blacken(const Window& part, Shape image, std::span<std::uint8_t> rgb) {
  for (int y = part.top; y < part.bottom; ++y) {
    const auto first = (static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) +
                        static_cast<std::size_t>(part.left)) *
                       3;
    std::fill_n(rgb.begin() + static_cast<std::ptrdiff_t>(first), (part.right - part.left) * 3,
                std::uint8_t{0});
  }
}

}  // namespace

// Every kind has words of its own, so that switching one on does not change what others draw.
Change choose_change(const data::Augment& augment, Shape image, std::uint64_t seed, int epoch,
                     std::uint32_t sample) {
  const RandomStream stream(seed, Purpose::augment, static_cast<std::uint32_t>(epoch), sample);
  const auto turns = stream.at(0), warps = stream.at(1), places = stream.at(2);
  Change change;
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
  change.crop_rows = static_cast<int>(below(places[2], crops)) - augment.crop;
  change.crop_columns = static_cast<int>(below(places[3], crops)) - augment.crop;
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

void change_image(const std::uint8_t* src, Shape image, data::Turn turn, const Change& change,
                  std::span<std::uint8_t> dst) {
  const Placed placed = place_pixels(turn, change, image);
  map_image(src, image, placed.map, placed.window, dst);
  apply(change.rand, image, dst);
  change_colour(dst, change.colour);
  blacken(change.cutout, image, dst);
}

compute::ImageMove move_of(std::uint32_t source, Shape image, data::Turn turn,
                           const Change& change) {
  const Placed placed = place_pixels(turn, change, image);
  compute::ImageMove move = as_move(placed.map, image, placed.window).value();
  move.source = source;
  return move;
}

}  // namespace cputrain::datasets
