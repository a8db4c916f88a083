#include "datasets/augment.h"

#include <cassert>
#include <cstddef>
#include <cstring>

#include "core/random.h"

namespace cputrain {

Turn choose_turn(Augment augment, std::uint64_t seed, int epoch, std::uint32_t sample) {
  if (augment == Augment::none) return Turn::none;
  const std::uint32_t word =
      RandomStream(seed, Purpose::augment, static_cast<std::uint32_t>(epoch), sample).at(0)[0];
  if (augment == Augment::flip) return below(word, 2) == 1 ? Turn::flip_horizontal : Turn::none;
  return static_cast<Turn>(below(word, 6));
}

bool fits(Augment augment, Shape image) {
  return augment != Augment::six || image.height == image.width;
}

void turn_picture(const std::uint8_t* src, Shape image, Turn turn, std::span<std::uint8_t> dst) {
  assert(image.channels == 3 && dst.size() == image.size());
  const auto height = static_cast<std::ptrdiff_t>(image.height);
  const auto width = static_cast<std::ptrdiff_t>(image.width);
  // Position (in pixels) of the source of dst (y, x): origin + y * down + x * across.
  std::ptrdiff_t origin = 0, down = width, across = 1;
  switch (turn) {
    case Turn::none:
      break;
    case Turn::flip_vertical:
      origin = (height - 1) * width, down = -width;
      break;
    case Turn::flip_horizontal:
      origin = width - 1, across = -1;
      break;
    case Turn::by_90:
      origin = width - 1, down = -1, across = width;
      break;
    case Turn::by_180:
      origin = height * width - 1, down = -width, across = -1;
      break;
    case Turn::by_270:
      origin = (height - 1) * width, down = 1, across = -width;
      break;
  }
  assert(turn != Turn::by_90 && turn != Turn::by_270 ? true : height == width);
  std::uint8_t* out = dst.data();
  for (std::ptrdiff_t y = 0; y < height; ++y) {
    const std::uint8_t* from = src + (origin + y * down) * 3;
    for (std::ptrdiff_t x = 0; x < width; ++x, out += 3, from += across * 3) {
      out[0] = from[0];
      out[1] = from[1];
      out[2] = from[2];
    }
  }
}

}  // namespace cputrain
