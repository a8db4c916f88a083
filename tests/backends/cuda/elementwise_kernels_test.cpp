#include "backends/cuda/kernels/elementwise.h"

#include <limits>

#include "backends/cuda/selftest/plain_dropout.h"
#include "tests/backends/cuda/device_arrays.h"
#include "tests/backends/cuda/stored_numbers.h"

namespace cputrain::cuda {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(LoadImages, ScalesBytesAndClearsThePadding) {
  constexpr int kImages = 3, kHeight = 5, kWidth = 7;
  std::vector<std::uint8_t> bytes(kImages * kHeight * kWidth * 3);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37 + 1);
  const float scale = 2.0f / 255, offset = -1;
  std::vector<compute::ImageMove> whole;
  for (std::uint32_t i = 0; i < kImages; ++i) {
    whole.push_back(compute::whole_image(i, {kHeight, kWidth, 3}));
  }
  for (const std::size_t shift : {0, 1, 2, 3}) {
    const auto map = twice([&] {
      const DeviceArray<std::uint8_t> src(bytes, shift);
      const auto dst = DeviceArray<float>::poisoned(bytes.size() / 3 * 8);
      const DeviceArray<compute::ImageMove> moves(whole);
      const DeviceArray<PassFacts> facts(
          std::vector{PassFacts{.bytes = src.data(), .moves = moves.data()}});
      load_images(test_stream().get(), Numbers::exact,
                  {kImages, kHeight, kWidth, scale, offset, facts.data()}, dst.data());
      return dst.read();
    });
    const auto numbers = without_padding(map, 3);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_NEAR(numbers[i], bytes[i] * 2.0 / 255 - 1, 2e-7) << i;
    }
  }
}

/// Numbers of both signs, zeros of both, none.
std::vector<float> signed_numbers(std::size_t size) {
  auto values = random_floats(size, 1);
  const float special[] = {0.0f,
                           -0.0f,
                           kNan,
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           1e-40f,
                           -1e-40f};
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = special[i / 3 % 7];
  return values;
}

TEST(ReluKernels, CutBelowZeroAndKeepWhatIsNoNumber) {
  for (const std::size_t size : {8, 24, 1000, 4104}) {
    const auto values = signed_numbers(size), diffs = random_floats(size, 2);
    const auto [map, diff] = twice([&] {
      const DeviceArray<float> m(values), d(diffs);
      relu_forward(test_stream().get(), Numbers::exact, size, m.data());
      relu_backward(test_stream().get(), Numbers::exact, size, m.data(), d.data());
      return std::tuple(m.read(), d.read());
    });
    std::vector<float> expected(values), expected_diff(diffs);
    for (std::size_t i = 0; i < size; ++i) {
      if (values[i] <= 0) expected[i] = 0;
      if (!(values[i] > 0)) expected_diff[i] = 0;
    }
    expect_same_values(map, expected);
    expect_same_values(diff, expected_diff);
  }
}

/// In their order, and into one of them; of one a copy.
template <class N>
void expect_sum(int maps, std::size_t size) {
  std::vector<DeviceArray<typename N::Stored>> arrays;
  MapList list{};
  std::vector<float> expected;
  for (int m = 0; m < maps; ++m) {
    const auto values = rounded<N>(random_floats(size, 3 + static_cast<unsigned>(m)));
    arrays.emplace_back(stored<N>(values));
    list.of[list.count++] = arrays.back().data();
    if (m == 0) expected = values;
    for (std::size_t i = 0; m > 0 && i < size; ++i) expected[i] += values[i];
  }
  const auto dst = DeviceArray<typename N::Stored>::poisoned(size);
  add_maps(test_stream().get(), N::kNumbers, size, list, dst.data());
  expect_same_values(loaded<N>(dst.read()), rounded<N>(expected));
  add_maps(test_stream().get(), N::kNumbers, size, list, arrays.back().data());
  expect_same_values(loaded<N>(arrays.back().read()), rounded<N>(expected));
}

TEST(AddMapsKernel, AddsInOrderAndRoundsOnce) {
  for (const int maps : {1, 2, 3, kMostMaps}) {
    for (const std::size_t size : {8, 1000, 4104}) {
      expect_sum<ExactNumbers>(maps, size);
      expect_sum<Bf16Numbers>(maps, size);
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
  for (const int channels : {1, 2, 3, 4, 5, 7, 8, 20, 21, 270}) {
    for (const DropoutCase& c : {DropoutCase{1, channels, 0.5f}, DropoutCase{35, channels, 0.3f},
                                 DropoutCase{6, channels, 0}, DropoutCase{6, channels, 1}}) {
      SCOPED_TRACE(std::to_string(c.positions) + " positions, " + std::to_string(channels));
      const DropoutCall call{c.rate, 5, 3, c.positions, channels};
      const auto values = random_floats(static_cast<std::size_t>(3 * c.positions * channels), 1);
      const auto map = twice([&] {
        const DeviceArray<float> m(with_padding(values, channels));
        dropout(test_stream().get(), Numbers::exact, call, on_device.data(), m.data());
        return m.read();
      });
      expect_same_values(without_padding(map, channels), c.rate < 1
                                                             ? dropped(call, facts, samples, values)
                                                             : std::vector<float>(values.size()));
    }
  }
}

// Without memory: whatever was launched would be a fault.
TEST(ElementwiseKernels, LaunchNothingForNothing) {
  const Stream stream = test_stream().get();
  load_images(stream, Numbers::exact, {.images = 0, .height = 4, .width = 4}, nullptr);
  relu_forward(stream, Numbers::exact, 0, nullptr);
  relu_backward(stream, Numbers::exact, 0, nullptr, nullptr);
  add_maps(stream, Numbers::exact, 0, {{nullptr}, 1}, nullptr);
  dropout(stream, Numbers::exact, DropoutCall{}, nullptr, nullptr);
  test_stream().synchronize();
}

}  // namespace
}  // namespace cputrain::cuda
