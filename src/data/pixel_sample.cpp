#include "data/pixel_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/hash.h"
#include "core/random/random.h"

namespace cputrain::data {
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

/// Some rows of an image, the first and the last among them.
void add_rows(Fnv1a& hash, std::span<const std::uint8_t> pixels, std::size_t height) {
  const std::size_t row = pixels.size() / height, count = std::min(kComparedRows, height);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t y = count == 1 ? 0 : i * (height - 1) / (count - 1);
    hash.add(std::as_bytes(pixels.subspan(y * row, row)));
  }
}

}  // namespace

std::string pixel_sample(const DecodedData& data, std::uint64_t seed) {
  const std::size_t train = data.train.size();
  const auto drawn = draw_images(train + data.validation.size(), seed);
  Fnv1a hash;
  std::vector<std::uint8_t> space;
  for (const std::uint32_t number : drawn) {
    const ImageSet& set = number < train ? data.train : data.validation;
    const Shape shape = set.kept();
    space.resize(shape.size());
    const std::uint8_t* pixels = set.pixels_of(number < train ? number : number - train, space);
    add_rows(hash, std::span(pixels, shape.size()), static_cast<std::size_t>(shape.height));
  }
  return fmt::format("{:016x} of {} images", hash.value(), drawn.size());
}

std::vector<std::uint32_t> pixel_samples(const DataSource& source, std::uint64_t seed) {
  const std::size_t train = source.train.size();
  std::vector<std::uint32_t> samples;
  for (const std::uint32_t number : draw_images(train + source.validation.size(), seed)) {
    samples.push_back(number < train ? source.train[number] : source.validation[number - train]);
  }
  return samples;
}

}  // namespace cputrain::data
