#pragma once

#include <cmath>
#include <cstddef>
#include <span>

/// What sums that send a part do with the rest.
namespace cputrain::exchange {

/// For elements that travel as they are from now on: adds what was not sent of them to what is
/// sent. Zeros are not written, since pages of zeros may take no memory.
template <class T>
void send_owed(std::span<T> unsent, std::span<T> sent) {
  for (std::size_t i = 0; i < unsent.size(); ++i) {
    if (unsent[i] == 0) continue;
    sent[i] += unsent[i];
    unsent[i] = 0;
  }
}

template <class T>
void clear_no_numbers(std::span<T> values) {
  for (T& value : values) {
    if (!std::isfinite(value)) value = 0;
  }
}

}  // namespace cputrain::exchange
