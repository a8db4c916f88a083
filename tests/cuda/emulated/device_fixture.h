#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/device/device.h"
#include "emulated/fault.h"
#include "emulated/settings.h"

namespace cputrain::emulated {

/// A test of the emulated device: begins in order, on an H100.
class OnDevice : public testing::Test {
 protected:
  OnDevice() { restart({}); }
  ~OnDevice() override { restart({}); }
};

/// An array of the device.
template <class T>
class DeviceArray {
 public:
  DeviceArray(std::size_t size, const char* name) : block_(size * sizeof(T), name), size_(size) {}
  DeviceArray(const std::vector<T>& values, const char* name) : DeviceArray(values.size(), name) {
    const cuda::OwnedStream stream;
    cuda::copy_async(data(), values.data(), size_ * sizeof(T), stream.get());
    stream.synchronize();
  }
  T* data() const { return static_cast<T*>(block_.data()); }
  /// The first `size` elements.
  std::vector<T> values(std::size_t size) const {
    std::vector<T> all(size);
    const cuda::OwnedStream stream;
    cuda::copy_async(all.data(), data(), size * sizeof(T), stream.get());
    return all;
  }
  std::vector<T> values() const { return values(size_); }

 private:
  cuda::DeviceBlock block_;
  std::size_t size_;
};

/// What some work throws.
template <class Thrown = Fault, class Work>
std::optional<std::string> message_of(const Work& work) {
  try {
    work();
  } catch (const Thrown& e) {
    return e.what();
  }
  return std::nullopt;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace cputrain::emulated
