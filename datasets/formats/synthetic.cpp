#include "datasets/formats/synthetic.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>

#include "core/casts.h"
#include "core/random/random.h"
#include "datasets/folders/content_hash.h"

namespace cputrain::datasets {
namespace {

/// Lengths are fractions of the image's sides.
struct Spot {
  float x, y, radius;
};

struct Scene {
  std::vector<Spot> spots;
  std::array<float, 3> mean{}, contrast{}, slope_x{}, slope_y{};
  std::uint64_t noise_key = 0;
};

constexpr float kNoise = 10;  // grey levels to either side

float between(float low, float high, std::uint32_t word) {
  return low + (high - low) * unit_float(word);
}

/// Class 1 has many small bright spots, class 0 a few large pale ones. What spots add to the mean
/// colour is taken from the ground, so that the mean has little to do with the class: a shade of
/// red or blue that gets 4 of 5 right. Images are dark because large inputs make large gradients,
/// and plain SGD with a high rate must be able to learn them, too.
Scene make_scene(std::uint64_t seed, std::size_t index, int label) {
  const RandomStream stream(seed, Purpose::pixels, static_cast<std::uint32_t>(index));
  const auto first = stream.at(0);
  const bool small = label == 1;
  const std::array<float, 3> shade = {small ? 3.0f : -3.0f, 0.0f, small ? -3.0f : 3.0f};
  Scene scene;
  scene.noise_key = static_cast<std::uint64_t>(first[0]) << 32 | first[1];
  for (std::size_t c = 0; c < 3; ++c) {
    const auto words = stream.at(static_cast<std::uint32_t>(1 + c));
    scene.mean[c] = between(46, 62, words[0]) + shade[c];
    scene.contrast[c] = small ? between(60, 90, words[1]) : between(10, 30, words[1]);
    scene.slope_x[c] = between(-8, 8, words[2]);
    scene.slope_y[c] = between(-8, 8, words[3]);
  }
  scene.spots.resize(small ? 90 + below(first[2], 41) : 2 + below(first[2], 3));
  for (std::size_t i = 0; i < scene.spots.size(); ++i) {
    const auto words = stream.at(static_cast<std::uint32_t>(4 + i));
    scene.spots[i] = {unit_float(words[0]), unit_float(words[1]),
                      small ? between(0.022f, 0.038f, words[2]) : between(0.10f, 0.18f, words[2])};
  }
  return scene;
}

/// 1 inside spots, 0 outside, with a soft edge; height * width values.
std::vector<float> spot_mask(const Scene& scene, Shape image) {
  const auto width = static_cast<float>(image.width), height = static_cast<float>(image.height);
  std::vector<float> mask(to_size(image.width) * to_size(image.height));
  constexpr float kEdge = 0.01f;
  const auto pixel_range = [](float centre, float reach, int size) {
    const auto pixels = static_cast<float>(size);
    return std::pair(std::clamp(to_int((centre - reach) * pixels), 0, size),
                     std::clamp(to_int((centre + reach) * pixels) + 1, 0, size));
  };
  for (const Spot& spot : scene.spots) {
    const float reach = spot.radius + kEdge;
    const auto [left, right] = pixel_range(spot.x, reach, image.width);
    const auto [top, bottom] = pixel_range(spot.y, reach, image.height);
    for (int y = top; y < bottom; ++y) {
      const float dy = (static_cast<float>(y) + 0.5f) / height - spot.y;
      float* row = mask.data() + to_size(y) * to_size(image.width);
      for (int x = left; x < right; ++x) {
        const float dx = (static_cast<float>(x) + 0.5f) / width - spot.x;
        const float depth = (reach - std::sqrt(dx * dx + dy * dy)) / (2 * kEdge);
        row[x] = std::max(row[x], std::clamp(depth, 0.0f, 1.0f));
      }
    }
  }
  return mask;
}

/// Steele, Lea and Flood's SplitMix64 with a counter: eight random bytes a call.
std::uint64_t split_mix(std::uint64_t key, std::uint64_t counter) {
  std::uint64_t z = key + (counter + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// Adds noise of up to kNoise to eight samples and rounds them to bytes.
void finish_eight(const float* values, std::uint64_t noise, std::uint8_t* dst) {
  std::array<float, 8> sums{};
  for (std::size_t k = 0; k < 8; ++k) {
    const auto byte = to_int(noise >> (8 * k) & 0xFF);
    // 0.5 rounds; the clamp is for the rare ground that spots of 90 levels made black.
    sums[k] = values[k] + (static_cast<float>(byte) - 127.5f) * (kNoise / 127.5f) + 0.5f;
    sums[k] = std::min(std::max(sums[k], 0.0f), 255.0f);
  }
  for (std::size_t k = 0; k < 8; ++k) dst[k] = static_cast<std::uint8_t>(to_int(sums[k]));
}

/// `values` has room for a multiple of eight.
void finish_row(std::span<const float> values, std::uint64_t key, std::size_t row,
                std::span<std::uint8_t> dst) {
  std::size_t i = 0;
  for (; i + 8 <= dst.size(); i += 8) {
    finish_eight(&values[i], split_mix(key, row << 20 | i >> 3), &dst[i]);
  }
  std::array<std::uint8_t, 8> last{};
  if (i == dst.size()) return;
  finish_eight(&values[i], split_mix(key, row << 20 | i >> 3), last.data());
  std::copy_n(last.begin(), dst.size() - i, dst.begin() + static_cast<std::ptrdiff_t>(i));
}

void draw(const Scene& scene, Shape image, std::span<std::uint8_t> dst) {
  const std::vector<float> mask = spot_mask(scene, image);
  const auto width = to_size(image.width);
  const float covered =
      std::accumulate(mask.begin(), mask.end(), 0.0f) / static_cast<float>(mask.size());
  std::vector<float> ground(width * 3), row((width * 3 + 7) / 8 * 8);
  for (std::size_t x = 0; x < width; ++x) {
    const float across = (static_cast<float>(x) + 0.5f) / static_cast<float>(width) - 0.5f;
    for (std::size_t c = 0; c < 3; ++c) {
      ground[x * 3 + c] = scene.mean[c] - scene.contrast[c] * covered + scene.slope_x[c] * across;
    }
  }
  for (int y = 0; y < image.height; ++y) {
    const auto line = to_size(y);
    const float down = (static_cast<float>(y) + 0.5f) / static_cast<float>(image.height) - 0.5f;
    const float* spots = mask.data() + line * width;
    for (std::size_t x = 0; x < width; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        row[x * 3 + c] = ground[x * 3 + c] + scene.slope_y[c] * down + scene.contrast[c] * spots[x];
      }
    }
    finish_row(row, scene.noise_key, line, dst.subspan(line * width * 3, width * 3));
  }
}

class SyntheticDataset final : public data::Dataset {
 public:
  SyntheticDataset(std::size_t count, std::uint64_t seed) : count_(count), seed_(seed) {}

  std::size_t size() const override { return count_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  /// One of each two neighbours is of class 1, by chance the first or the second: classes are
  /// balanced, and no stride through the indices meets one class only.
  int label(std::size_t index) const override {
    const RandomStream stream(seed_, Purpose::pixels, static_cast<std::uint32_t>(index / 2), 1);
    return to_int((stream.at(0)[0] & 1) ^ (index & 1));
  }

  std::string name(std::size_t index) const override {
    return "synthetic[" + std::to_string(index) + "]";
  }

  /// Drawn at the size asked for, so there is nothing to resize.
  data::ReadResult read(std::size_t index, Shape image, const data::Resizing&,
                        std::span<std::uint8_t> dst) const override {
    assert(image.channels == 3 && dst.size() == image.size());
    draw(make_scene(seed_, index, label(index)), image, dst);
    return {};
  }

  data::SampleFacts inspect(std::size_t index) const override {
    constexpr Shape kSmall{32, 32, 3};
    std::vector<std::uint8_t> pixels(kSmall.size());
    read(index, kSmall, data::Resize::bilinear, pixels);
    return {{}, ContentHash().add(pixels).value(), false};
  }

  std::uint64_t fingerprint() const override {
    return ContentHash().add("synthetic").add(count_).add(seed_).value();
  }

 private:
  std::size_t count_;
  std::uint64_t seed_;
  std::vector<std::string> classes_{"large_spots", "small_spots"};
};

}  // namespace

std::unique_ptr<data::Dataset> make_synthetic_dataset(std::size_t count, std::uint64_t seed) {
  return std::make_unique<SyntheticDataset>(count, seed);
}

}  // namespace cputrain::datasets
