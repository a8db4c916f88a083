#pragma once

#include <cassert>
#include <cstddef>
#include <span>
#include <type_traits>

namespace cputrain {

enum class DType { f32, f64 };

constexpr std::size_t size_of(DType type) { return type == DType::f32 ? 4 : 8; }

template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  return std::is_same_v<T, float> ? DType::f32 : DType::f64;
}

/// A borrowed run of numbers whose type is known at run time only, so that contracts need no
/// templates. It never owns its memory.
struct Array {
  void* data = nullptr;
  std::size_t size = 0;  ///< elements
  DType dtype = DType::f32;

  template <class T>
  static Array of(std::span<T> values) {
    return {values.data(), values.size(), dtype_of<T>()};
  }

  template <class T>
  std::span<T> as() const {
    [[maybe_unused]] constexpr DType kWanted = dtype_of<T>();  // refuses T under NDEBUG, too
    assert(dtype == kWanted);
    return {static_cast<T*>(data), size};
  }

  Array slice(std::size_t begin, std::size_t end) const {
    assert(begin <= end && end <= size);
    return {static_cast<std::byte*>(data) + begin * size_of(dtype), end - begin, dtype};
  }

  std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(data), size * size_of(dtype)};
  }
};

/// Half-open run of element positions.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

}  // namespace cputrain
