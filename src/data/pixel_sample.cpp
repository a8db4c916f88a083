#include "data/pixel_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/hash.h"
#include "core/random.h"

namespace cputrain {
namespace {

/// Numbers of images, ascending and different.
std::set<std::uint32_t> draw_images(std::size_t total, std::uint64_t seed) {
  const std::size_t count = std::min(kComparedImages, total);
  const RandomStream stream(seed, Purpose::comparison);
  std::set<std::uint32_t> drawn;
  if (count == total) {
    for (std::uint32_t i = 0; i < total; ++i) drawn.insert(i);
  }
  for (std::uint32_t i = 0; drawn.size() < count; ++i) {
    drawn.insert(below(stream.at(i)[0], static_cast<std::uint32_t>(total)));
  }
  return drawn;
}

}  // namespace

std::string pixel_sample(const DecodedData& data, std::uint64_t seed) {
  const std::size_t train = data.train.size();
  const auto drawn = draw_images(train + data.validation.size(), seed);
  Fnv1a hash;
  for (const std::uint32_t number : drawn) {
    const ImageSet& set = number < train ? data.train : data.validation;
    const std::uint8_t* pixels = set.pixels[number < train ? number : number - train];
    hash.add(std::as_bytes(std::span(pixels, set.image.size())));
  }
  return fmt::format("{:016x} of {} images", hash.value(), drawn.size());
}

}  // namespace cputrain
