#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <tuple>
#include <vector>

#include "backends/cuda/device/device.h"
#include "backends/cuda/selftest/maps.h"
#include "backends/cuda/selftest/stored_numbers.h"

/// What the tests of kernels share: arrays on the device, maps with and without padding.
namespace cputrain::cuda {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The stream of this test program.
inline OwnedStream& test_stream() {
  static OwnedStream stream;
  return stream;
}

/// An array on the device that begins `shift` elements behind a 256-byte boundary.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::span<const T> values, std::size_t shift = 0)
      : block_((shift + values.size() + 1) * sizeof(T), "array"),
        shift_(shift),
        size_(values.size()) {
    copy_async(data(), values.data(), values.size_bytes(), test_stream().get());
    test_stream().synchronize();
  }
  explicit DeviceArray(const std::vector<T>& values, std::size_t shift = 0)
      : DeviceArray(std::span<const T>(values), shift) {}

  /// An array of numbers that no kernel computes.
  static DeviceArray poisoned(std::size_t size) {
    std::vector<T> values(size);
    std::memset(static_cast<void*>(values.data()), 0xa5, size * sizeof(T));
    return DeviceArray(values);
  }

  T* data() const { return static_cast<T*>(block_.data()) + shift_; }

  std::vector<T> read() const {
    std::vector<T> values(size_);
    copy_async(values.data(), data(), size_ * sizeof(T), test_stream().get());
    test_stream().synchronize();
    return values;
  }

 private:
  DeviceBlock block_;
  std::size_t shift_, size_;
};

/// A map whose numbers lie as `Numbers` say; they must be numbers that the format has.
class DeviceMap {
 public:
  DeviceMap(Numbers numbers, const std::vector<float>& values)
      : DeviceMap(numbers, DeviceArray<std::byte>(stored(numbers, values))) {}
  static DeviceMap poisoned(Numbers numbers, std::size_t size) {
    return {numbers, DeviceArray<std::byte>::poisoned(size * stored_bytes(numbers))};
  }

  void* data() const { return bytes_.data(); }
  std::vector<float> read() const { return loaded(numbers_, bytes_.read()); }

 private:
  DeviceMap(Numbers numbers, DeviceArray<std::byte> bytes)
      : numbers_(numbers), bytes_(std::move(bytes)) {}

  Numbers numbers_;
  DeviceArray<std::byte> bytes_;
};

inline constexpr Numbers kAllNumbers[] = {Numbers::exact, Numbers::tf32, Numbers::bf16};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}
template <class... Parts>
bool same_bits(const std::tuple<Parts...>& a, const std::tuple<Parts...>& b) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return (same_bits(std::get<i>(a), std::get<i>(b)) && ...);
  }
  (std::index_sequence_for<Parts...>());
}

/// What `run` returns, a vector or a tuple of them, which must have the same bits a second time.
template <class Run>
auto twice(const Run& run) {
  const auto first = run();
  EXPECT_TRUE(same_bits(first, run()));
  return first;
}

/// The same number, or none on both sides.
template <class T>
bool same_value(T a, T b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}
template <class T>
void expect_same_values(const std::vector<T>& actual, const std::vector<T>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(same_value(actual[i], expected[i]))
        << "element " << i << ": " << actual[i] << " instead of " << expected[i];
  }
}

inline std::vector<float> random_floats(std::size_t size, unsigned seed, float low = -1,
                                        float high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(size);
  for (float& value : values) value = distribution(generator);
  return values;
}

/// The reverse of with_padding(); padding must be zero.
template <class T>
std::vector<T> without_padding(const std::vector<T>& map, int channels) {
  const auto to = static_cast<std::size_t>(channels);
  const auto from = static_cast<std::size_t>(padded_channels(channels));
  std::vector<T> dense;
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (i % from < to) {
      dense.push_back(map[i]);
    } else {
      EXPECT_EQ(map[i], T{0}) << "padding at " << i;
    }
  }
  return dense;
}

}  // namespace cputrain::cuda
