#include "datasets/decode/thumbnail.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/casts.h"
#include "datasets/decode/encode.h"
#include "datasets/pixels/change.h"

namespace cputrain::datasets {
namespace {

constexpr int kChannels = 3;
constexpr int kWithoutLoss = 64;  // longest side for which a PNG is small

/// The pixels of an axis that a new one covers.
struct Covered {
  int begin, end;
};

Covered covered(int place, int from, int to) {
  return {place * from / to, std::max(place * from / to + 1, (place + 1) * from / to)};
}

Image shrunk(const Image& image, int width, int height) {
  Image small{width, height, {}};
  small.rgb.reserve(to_size(width) * to_size(height) * kChannels);
  for (int y = 0; y < height; ++y) {
    const Covered rows = covered(y, image.height, height);
    for (int x = 0; x < width; ++x) {
      const Covered columns = covered(x, image.width, width);
      const int count = (rows.end - rows.begin) * (columns.end - columns.begin);
      for (int c = 0; c < kChannels; ++c) {
        int sum = 0;
        for (int i = rows.begin; i < rows.end; ++i) {
          for (int j = columns.begin; j < columns.end; ++j)
            sum += image.rgb[to_size((i * image.width + j) * kChannels + c)];
        }
        small.rgb.push_back(static_cast<std::uint8_t>((sum + count / 2) / count));
      }
    }
  }
  return small;
}

}  // namespace

data::Thumbnail make_thumbnail(std::span<const std::uint8_t> pixels, Shape shape, data::Turn turn,
                               int longest) {
  Image image{shape.width, shape.height, std::vector<std::uint8_t>(pixels.size())};
  change_image(pixels.data(), shape, turn, Change{}, image.rgb);
  const int side = std::max(image.width, image.height);
  if (side > longest) {
    image = shrunk(image, std::max(1, image.width * longest / side),
                   std::max(1, image.height * longest / side));
  }
  const bool exact = side <= kWithoutLoss;
  return {exact ? "image/png" : "image/jpeg", encode(image, exact ? "png" : "jpeg"), image.width,
          image.height};
}

}  // namespace cputrain::datasets
