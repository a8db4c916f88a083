#include "tests/golden/numbers.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "core/random/random.h"

namespace cputrain::golden {
namespace {

std::uint32_t word(const RandomStream& stream, std::size_t i) {
  return stream.at(static_cast<std::uint32_t>(i / 4))[i % 4];
}

/// Calls f(i, unit number i) for the first `count` numbers of a stream.
template <class F>
void for_units(const RandomStream& stream, std::size_t count, F f) {
  for (std::size_t group = 0; group * 4 < count; ++group) {
    const auto words = stream.at(static_cast<std::uint32_t>(group));
    for (std::size_t i = 0; i < 4 && group * 4 + i < count; ++i) {
      f(group * 4 + i, static_cast<double>(unit_float(words[i])));
    }
  }
}

/// Patches of 8 x 8 pixels of one colour each under a quarter of noise.
std::vector<std::uint8_t> sample(Shape image, std::uint64_t seed, std::uint32_t index) {
  const RandomStream colours(seed, Purpose::noise, index), noise(seed, Purpose::pixels, index);
  const std::size_t columns = (static_cast<std::size_t>(image.width) + 7) / 8;
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      for (int c = 0; c < image.channels; ++c) {
        const std::size_t patch = (y / 8 * columns + x / 8) * image.channels + c;
        const std::uint32_t colour = word(colours, patch) & 255;
        pixels.push_back(
            static_cast<std::uint8_t>((3 * colour + (word(noise, pixels.size()) & 255)) / 4));
      }
    }
  }
  return pixels;
}

struct Limits {
  double low, high;
};

Limits start_limits(const model::ParameterSpec& parameter) {
  static const std::map<std::string, Limits> kVectors{{"bias", {-0.1, 0.1}},
                                                      {"gamma", {-0.5, 1.5}},
                                                      {"beta", {-0.25, 0.25}},
                                                      {"moving_mean", {-0.25, 0.25}},
                                                      {"moving_variance", {0.5, 1.5}}};
  const std::string kind = parameter.name.substr(parameter.name.find('/') + 1);
  if (kind != "kernel") return kVectors.at(kind);
  const double fan_in = static_cast<double>(parameter.size()) / parameter.extents.back();
  const double limit = std::sqrt(6.0 / fan_in);
  return {-limit, limit};
}

}  // namespace

Samples::Samples(Shape image, int classes, std::uint64_t seed, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    pixels_.push_back(sample(image, seed, static_cast<std::uint32_t>(i)));
    pointers_.push_back(pixels_.back().data());
    labels_.push_back(i % classes);
    samples_.push_back(static_cast<std::uint32_t>(i));
  }
}

compute::MicroBatch Samples::piece(int begin, int end) const {
  const auto part = [&](const auto& all) {
    return std::span(all).subspan(static_cast<std::size_t>(begin),
                                  static_cast<std::size_t>(end - begin));
  };
  return {part(pointers_), part(labels_), part(samples_)};
}

compute::MicroBatch Samples::labelled(int index, int label) {
  label_ = label;
  compute::MicroBatch batch = piece(index, index + 1);
  batch.labels = std::span(&label_, 1);
  return batch;
}

Sums sums(std::span<const double> tensor, std::uint64_t seed, std::uint32_t key) {
  Sums result{0, 0};
  for_units(RandomStream(seed, Purpose::noise, key), tensor.size(), [&](std::size_t i, double u) {
    result.norm += tensor[i] * tensor[i];
    result.dot += tensor[i] * (u - 0.5);
  });
  result.norm = std::sqrt(result.norm);
  return result;
}

double Difference::relative() const {
  const double relative = error / norm;
  return std::isfinite(relative) ? relative : std::numeric_limits<double>::infinity();
}

Difference difference(std::span<const double> values, std::span<const double> exact) {
  Difference sum{0, 0};
  for (std::size_t i = 0; i < exact.size(); ++i) {
    sum.error += (values[i] - exact[i]) * (values[i] - exact[i]);
    sum.norm += exact[i] * exact[i];
  }
  return {std::sqrt(sum.error), std::sqrt(sum.norm)};
}

std::uint32_t name_key(std::string_view name) {
  std::uint32_t key = 0x811C9DC5u;
  for (const char c : name) key = (key ^ static_cast<unsigned char>(c)) * 0x01000193u;
  return key;
}

std::vector<double> start_values(const model::ParameterSpec& parameter, std::uint64_t seed) {
  const Limits limits = start_limits(parameter);
  const bool kernel = parameter.extents.size() > 1;
  std::vector<double> values(parameter.size());
  for_units(RandomStream(seed, Purpose::weights, name_key(parameter.name)), values.size(),
            [&](std::size_t i, double u) {
              const double value =
                  kernel ? (2 * u - 1) * limits.high : limits.low + (limits.high - limits.low) * u;
              values[i] = static_cast<float>(value);
            });
  return values;
}

}  // namespace cputrain::golden
