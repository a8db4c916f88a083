#pragma once

#include <atomic>
#include <cstddef>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"

/// Kernels over whole arrays, on all threads. `Number` is float or Bf16.
namespace cputrain::cpu {

/// sums += values.
template <class Number>
void add_on_threads(const Number* values, Number* sums, std::size_t count) {
  parallel_ranges(count,
                  [&](std::size_t b, std::size_t e) { kernels::add(values + b, sums + b, e - b); });
}

/// The gradient of a ReLU whose output is `dst`, in place.
template <class Number>
void stop_at_zeros(const Number* dst, Number* diff, std::size_t count) {
  parallel_ranges(count, [&](std::size_t b, std::size_t e) {
    kernels::rectify_backward(model::Relu{}, dst + b, diff + b, e - b);
  });
}

/// Whether one of them is NaN.
inline bool has_nan(const float* values, std::size_t count) {
  std::atomic<bool> found = false;
  parallel_ranges(count, [&](std::size_t b, std::size_t e) {
    int nan = 0;
    for (std::size_t i = b; i < e; ++i) nan |= to_int(values[i] != values[i]);
    if (nan != 0) found = true;
  });
  return found;
}

/// Brings an array into the caches.
inline void fetch_on_threads(const std::byte* data, std::size_t bytes) {
  parallel_ranges(bytes, [&](std::size_t b, std::size_t e) { kernels::fetch(data + b, e - b); });
}

}  // namespace cputrain::cpu
