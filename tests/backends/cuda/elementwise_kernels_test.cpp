#include "backends/cuda/kernels/elementwise.h"

#include <bit>

#include "backends/cuda/selftest/plain_dropout.h"
#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

TEST(LoadImages, ScalesBytesAndClearsThePadding) {
  constexpr int kImages = 3, kHeight = 5, kWidth = 7;
  std::vector<std::uint8_t> bytes(kImages * kHeight * kWidth * 3);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37 + 1);
  const PerColour scale{2.0f / 255, 1.0f / 64, 0.5f}, offset{-1, 0, 0.25f};
  std::vector<compute::ImageMove> whole;
  for (std::uint32_t i = 0; i < kImages; ++i) {
    whole.push_back(compute::whole_image(i, {kHeight, kWidth, 3}));
  }
  for (const Numbers numbers : kAllNumbers) {
    for (const std::size_t shift : {0, 1, 2, 3}) {
      const auto map = twice([&] {
        const DeviceArray<std::uint8_t> src(bytes, shift);
        const auto dst = DeviceMap::poisoned(numbers, bytes.size() / 3 * 8);
        const DeviceArray<compute::ImageMove> moves(whole);
        const DeviceArray<PassFacts> facts(
            std::vector{PassFacts{.bytes = src.data(), .moves = moves.data()}});
        load_images(test_stream().get(), numbers,
                    {kImages, kHeight, kWidth, scale, offset, facts.data()}, dst.data());
        return dst.read();
      });
      const auto values = without_padding(map, 3);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        const double exact =
            bytes[i] * static_cast<double>(scale.of[i % 3]) + static_cast<double>(offset.of[i % 3]);
        ASSERT_NEAR(values[i], exact, 2e-7 + unit_roundoff(numbers) * std::abs(exact)) << i;
      }
    }
  }
}

/// Numbers that are hard to round, of both signs: about the middle between two of a format, beside
/// powers of two, subnormal, the largest, and any others.
std::vector<float> numbers_to_round() {
  std::vector<std::uint32_t> bits;
  for (const std::uint32_t exponent : {0u, 1u, 2u, 126u, 127u, 128u, 200u, 254u}) {
    for (const std::uint32_t middle : {0x1000u, 0x8000u}) {  // of tf32 and of bf16
      for (const std::uint32_t upper : {0u, 2 * middle, 0x7fffffu / middle / 2 * 2 * middle}) {
        for (std::uint32_t lower = middle - 2; lower <= middle + 2; ++lower) {
          bits.push_back(exponent << 23 | upper | lower);
        }
      }
    }
    bits.push_back(exponent << 23);
    bits.push_back(exponent << 23 | 0x7fffffu);
  }
  std::mt19937 generator(1);
  for (int i = 0; i < 4096; ++i) bits.push_back(static_cast<std::uint32_t>(generator()));
  std::vector<float> values;
  for (const std::uint32_t word : bits) {
    values.push_back(std::bit_cast<float>(word));
    values.push_back(std::bit_cast<float>(word ^ 0x80000000u));
  }
  values.resize(pieces(values.size(), kChannelBlock) * kChannelBlock);
  return values;
}

/// To the last bit, but for the payload of NaN.
void expect_rounded(Numbers numbers, const std::vector<float>& values,
                    const std::vector<float>& expected) {
  const DeviceArray<float> src(values);
  const auto dst = DeviceMap::poisoned(numbers, values.size());
  round_numbers(test_stream().get(), numbers, values.size(), src.data(), dst.data());
  const std::vector<float> made = dst.read();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(made[i])) << word_of(numbers) << " of NaN: " << made[i];
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(made[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << word_of(numbers) << " of " << std::hexfloat << values[i] << ": " << made[i]
        << " instead of " << expected[i];
  }
}

TEST(RoundNumbers, GivesTheNearestOfTheFormat) {
  const std::vector<float> values = numbers_to_round();
  for (const Numbers numbers : {Numbers::tf32, Numbers::bf16}) {
    expect_rounded(numbers, values, rounded(numbers, values));
  }
}

// Written down by hand: ties, what is too large, what is too small, and what is no finite number.
TEST(RoundNumbers, FollowsTheRulesOfTies) {
  const std::vector<float> values{0x1.002p0f, 0x1.006p0f, -0x1.002p0f,     0x1.01p0f,
                                  0x1.03p0f,  -0x1.01p0f, 0x1.fffffep127f, -0x1.fffffep127f,
                                  0x1p-149f,  -0x1p-149f, kInfinity,       -kInfinity,
                                  kNaN,       0.0f,       -0.0f,           0x1.8p-134f};
  expect_rounded(Numbers::tf32, values,
                 {0x1.004p0f, 0x1.008p0f, -0x1.004p0f, 0x1.01p0f, 0x1.03p0f, -0x1.01p0f, kInfinity,
                  -kInfinity, 0.0f, -0.0f, kInfinity, -kInfinity, kNaN, 0.0f, -0.0f, 0x1.8p-134f});
  expect_rounded(Numbers::bf16, values,
                 {1.0f, 1.0f, -1.0f, 1.0f, 0x1.04p0f, -1.0f, kInfinity, -kInfinity, 0.0f, -0.0f,
                  kInfinity, -kInfinity, kNaN, 0.0f, -0.0f, 0x1p-133f});
}

/// Numbers of both signs, zeros of both, none.
std::vector<float> signed_numbers(std::size_t size) {
  auto values = random_floats(size, 1);
  const float special[] = {0.0f, -0.0f, kNaN, kInfinity, -kInfinity, 1e-40f, -1e-40f};
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = special[i / 3 % 7];
  return values;
}

void expect_rectified(const Pointwise& rectifier, float slope) {
  for (const Numbers numbers : kAllNumbers) {
    for (const std::size_t size : {8, 24, 1000, 4104}) {
      const auto values = rounded(numbers, signed_numbers(size));
      const auto diffs = rounded(numbers, random_floats(size, 2));
      const auto [map, diff] = twice([&] {
        const DeviceMap m(numbers, values), d(numbers, diffs);
        activate(test_stream().get(), numbers, rectifier, size, m.data(), m.data());
        activate_backward(test_stream().get(), numbers, rectifier, size, m.data(), d.data(),
                          d.data(), false);
        return std::tuple(m.read(), d.read());
      });
      std::vector<float> expected(values), expected_diff(diffs);
      for (std::size_t i = 0; i < size; ++i) {
        if (values[i] <= 0) expected[i] = slope == 0 ? 0 : slope * values[i];
        if (!(values[i] > 0)) expected_diff[i] *= slope;
      }
      expect_same_values(map, rounded(numbers, expected));
      expect_same_values(diff, rounded(numbers, expected_diff));
    }
  }
}

TEST(RectifierKernels, BendBelowZeroAndKeepNaN) {
  expect_rectified(model::Relu{}, 0);
  expect_rectified(model::LeakyRelu{0.3f}, 0.3f);
}

/// In their order, and into one of them; of one a copy.
void expect_sum(Numbers numbers, int maps, std::size_t size) {
  std::vector<DeviceMap> arrays;
  MapList list{};
  std::vector<float> expected;
  for (int m = 0; m < maps; ++m) {
    const auto values = rounded(numbers, random_floats(size, 3 + static_cast<unsigned>(m)));
    arrays.emplace_back(numbers, values);
    list.of[list.count++] = arrays.back().data();
    if (m == 0) expected = values;
    for (std::size_t i = 0; m > 0 && i < size; ++i) expected[i] += values[i];
  }
  const auto dst = DeviceMap::poisoned(numbers, size);
  add_maps(test_stream().get(), numbers, size, list, dst.data());
  expect_same_values(dst.read(), rounded(numbers, expected));
  add_maps(test_stream().get(), numbers, size, list, arrays.back().data());
  expect_same_values(arrays.back().read(), rounded(numbers, expected));
}

TEST(AddMapsKernel, AddsInOrderAndRoundsOnce) {
  for (const int maps : {1, 2, 3, kMostMaps}) {
    for (const std::size_t size : {8, 1000, 4104}) {
      for (const Numbers numbers : kAllNumbers) expect_sum(numbers, maps, size);
    }
  }
}

struct DropoutCase {
  int positions, channels;
  float rate;
};

std::vector<float> dropped(const DropoutCall& call, const PassFacts& facts,
                           const std::vector<std::uint32_t>& samples, std::vector<float> values) {
  const std::vector<bool> kept = kept_by_mask(call, facts, samples);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = kept[i] ? values[i] * (1 / (1 - call.rate)) : 0;
  }
  return values;
}

TEST(DropoutKernel, IsTheMaskOfCore) {
  const std::vector<std::uint32_t> samples{7, 0, 0xfffffff0u};
  const DeviceArray<std::uint32_t> ids(samples);
  const PassFacts facts{.samples = ids.data(), .seed = 0x123456789abcdefu, .step = 0x700000003u};
  const DeviceArray<PassFacts> on_device(std::vector{facts});
  const auto expect_case = [&](Numbers numbers, const DropoutCase& c) {
    SCOPED_TRACE(std::string(word_of(numbers)) + ", " + std::to_string(c.positions) +
                 " positions, " + std::to_string(c.channels));
    const DropoutCall call{c.rate, 5, 3, c.positions, c.channels};
    const auto values =
        rounded(numbers, random_floats(static_cast<std::size_t>(3 * c.positions * c.channels), 1));
    const auto map = twice([&] {
      const DeviceMap m(numbers, with_padding(values, c.channels));
      dropout(test_stream().get(), numbers, call, on_device.data(), m.data());
      return m.read();
    });
    expect_same_values(without_padding(map, c.channels),
                       c.rate < 1 ? rounded(numbers, dropped(call, facts, samples, values))
                                  : std::vector<float>(values.size()));
  };
  for (const int channels : {1, 2, 3, 4, 5, 7, 8, 20, 21, 270}) {
    for (const Numbers numbers : kAllNumbers) {
      expect_case(numbers, {35, channels, 0.3f});
    }
    for (const DropoutCase& c : {DropoutCase{1, channels, 0.5f}, DropoutCase{6, channels, 0},
                                 DropoutCase{6, channels, 1}}) {
      expect_case(Numbers::exact, c);
    }
  }
}

// Without memory: whatever was launched would be a fault.
TEST(ElementwiseKernels, LaunchNothingForNothing) {
  const Stream stream = test_stream().get();
  load_images(stream, Numbers::exact, {.images = 0, .height = 4, .width = 4}, nullptr);
  round_numbers(stream, Numbers::bf16, 0, nullptr, nullptr);
  activate(stream, Numbers::exact, model::Relu{}, 0, nullptr, nullptr);
  activate_backward(stream, Numbers::exact, model::Relu{}, 0, nullptr, nullptr, nullptr, false);
  add_maps(stream, Numbers::exact, 0, {{nullptr}, 1}, nullptr);
  dropout(stream, Numbers::exact, DropoutCall{}, nullptr, nullptr);
  test_stream().synchronize();
}

}  // namespace
}  // namespace cputrain::cuda
