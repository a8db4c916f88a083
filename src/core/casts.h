#pragma once

#include <cstddef>
#include <type_traits>

namespace cputrain {

// Casts of numbers that fit, by name. What may not fit is checked where it comes from. Inlined
// always, since files for several instruction sets have these.

template <class T>
concept CountedOrNamed = std::is_arithmetic_v<T> || std::is_enum_v<T>;

[[gnu::always_inline]] constexpr std::size_t to_size(CountedOrNamed auto number) {
  return static_cast<std::size_t>(number);
}
[[gnu::always_inline]] constexpr int to_int(CountedOrNamed auto number) {
  return static_cast<int>(number);
}
[[gnu::always_inline]] constexpr double to_double(CountedOrNamed auto number) {
  return static_cast<double>(number);
}

}  // namespace cputrain
