#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backends/cuda/device/device.h"
#include "backends/cuda/selftest/maps.h"
#include "backends/cuda/selftest/stored_numbers.h"
#include "compute/selftest_case.h"

namespace cputrain::cuda {

/// What outputs and workspaces hold before a run: NaN the first time, so that it spreads where a
/// kernel reads what was not written, and a large number the second time.
inline float poison_of(int run) {
  return run == 0 ? std::numeric_limits<float>::quiet_NaN() : 1e30f;
}
/// Neither is a place in a window.
inline std::uint8_t poison_of_bytes(int run) { return run == 0 ? 0xff : 0xfe; }

/// An array on the device between two regions that must not be written. They are full of NaN, where
/// T has it, so that reading them shows. It begins `shift` elements behind a 256-byte boundary.
template <class T>
class GuardedArray {
 public:
  GuardedArray(std::string name, const OwnedStream& stream, const std::vector<T>& values,
               std::size_t shift = 0)
      : name_(std::move(name)),
        stream_(stream),
        before_(kGuardBytes / sizeof(T) + shift),
        size_(values.size()),
        block_((before_ + size_) * sizeof(T) + kGuardBytes, "array of a selftest") {
    std::vector<T> all(block_.size() / sizeof(T), guard());
    std::copy(values.begin(), values.end(), all.begin() + static_cast<std::ptrdiff_t>(before_));
    copy_async(block_.data(), all.data(), all.size() * sizeof(T), stream_.get());
    stream_.synchronize();
  }

  T* data() const { return static_cast<T*>(block_.data()) + before_; }

  /// What it holds; notes where a guard was written.
  std::vector<T> read(compute::RunOutputs& outputs) const {
    std::vector<T> all(block_.size() / sizeof(T));
    copy_async(all.data(), block_.data(), all.size() * sizeof(T), stream_.get());
    stream_.synchronize();
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(before_);
    const auto last = first + static_cast<std::ptrdiff_t>(size_);
    if (!std::all_of(all.begin(), first, is_guard)) {
      outputs.note("something was written in front of " + name_);
    }
    if (!std::all_of(last, all.end(), is_guard)) {
      outputs.note("something was written behind the end of " + name_);
    }
    return {first, last};
  }
  /// Adds what it holds to the outputs.
  std::vector<T> put_into(compute::RunOutputs& outputs) const {
    std::vector<T> values = read(outputs);
    outputs.add(name_, values);
    return values;
  }

 private:
  static constexpr std::size_t kGuardBytes = 256;

  static T guard() {
    T value;
    std::memset(static_cast<void*>(&value), 0xff, sizeof(T));
    return value;
  }
  static bool is_guard(const T& value) {
    const T expected = guard();
    return std::memcmp(&value, &expected, sizeof(T)) == 0;
  }

  std::string name_;
  const OwnedStream& stream_;
  std::size_t before_, size_;
  DeviceBlock block_;
};

/// The same of a map, whose numbers lie as `Numbers` say. They must be numbers that the format has,
/// but for poison.
class GuardedMap {
 public:
  GuardedMap(const std::string& name, const OwnedStream& stream, Numbers numbers,
             const std::vector<float>& values)
      : name_(name), numbers_(numbers), bytes_(name, stream, stored(numbers, values)) {}

  void* data() const { return bytes_.data(); }
  std::vector<float> put_into(compute::RunOutputs& outputs) const {
    std::vector<float> values = loaded(numbers_, bytes_.read(outputs));
    outputs.add(name_, values);
    return values;
  }

 private:
  std::string name_;
  Numbers numbers_;
  GuardedArray<std::byte> bytes_;
};

/// Behind the name of a case; nothing for exact.
inline std::string in_words(Numbers numbers) {
  return numbers == Numbers::exact ? "" : std::string(" in ") + word_of(numbers);
}
/// What rounding a case's outputs once adds to its limit.
inline double limit_of_rounding(Numbers numbers) {
  return numbers == Numbers::exact ? 0 : unit_roundoff(numbers);
}

/// Padding must be zero, whatever the limit of the case.
inline void check_padding(const std::string& name, const std::vector<float>& map, int channels,
                          compute::RunOutputs& outputs) {
  const auto stored = static_cast<std::size_t>(padded_channels(channels));
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (i % stored < static_cast<std::size_t>(channels) || map[i] == 0) continue;
    return outputs.note("padding of " + name + " is not zero, at " + std::to_string(i));
  }
}

}  // namespace cputrain::cuda
