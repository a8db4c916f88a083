#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace cputrain::cuda {

/// Divides numbers from 0 to 2^31 - 1 by one that the host knows: by a multiplication, as the
/// device has no instruction for a division (Granlund and Montgomery, "Division by invariant
/// integers using multiplication", 1994).
class Divisor {
 public:
  Divisor() = default;
  explicit constexpr Divisor(int number) : number_(number) {
    while (std::int64_t{1} << bits_ < number) ++bits_;
    const std::int64_t power = std::int64_t{1} << (31 + bits_);
    factor_ = static_cast<std::uint32_t>((power + number - 1) / number);
  }

  CPUTRAIN_HOST_DEVICE constexpr int number() const { return number_; }
  CPUTRAIN_HOST_DEVICE constexpr int quotient(int dividend) const {
    const std::uint32_t twice = 2u * dividend;
    return static_cast<int>((std::uint64_t{factor_} * twice >> 32) >> bits_);
  }

 private:
  int number_ = 1, bits_ = 0;
  std::uint32_t factor_ = 1u << 31;
};

/// A number written with three digits, of which the two lower ones have bases of their own, such as
/// (row, column, chunk) of a tap.
struct Digits {
  int low, middle, high;

  CPUTRAIN_HOST_DEVICE static constexpr Digits of(int number, const Divisor& low_base,
                                                  const Divisor& middle_base) {
    const int rest = low_base.quotient(number), high = middle_base.quotient(rest);
    return {number - rest * low_base.number(), rest - high * middle_base.number(), high};
  }
};

struct Position {
  int image, row, column;
};

/// Positions of a map, or windows on it, that are numbered through all images, row by row.
struct PositionNumbers {
  Divisor high, wide;  ///< an image's

  CPUTRAIN_HOST_DEVICE constexpr Position position(int number) const {
    const Digits at = Digits::of(number, wide, high);
    return {at.high, at.middle, at.low};
  }
};

}  // namespace cputrain::cuda
