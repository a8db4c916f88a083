#pragma once

#include <array>

#include "backends/cuda/selftest/stored_numbers.h"

/// What the kernel that measures tensor cores (kernels/limits.h) multiplies, written down once more
/// as the matrices that they see (device/tensor_core.h).
namespace cputrain::cuda {

inline constexpr int kLanes = 32, kTilesEach = 4;

/// The rows of A and the columns of B of the warp whose first thread is number `first`. A number
/// stands for one of TF32, or for a pair of bf16.
struct WarpMatrices {
  std::array<std::array<double, 8>, 16 * kTilesEach> a;
  std::array<std::array<double, 8>, 8 * kTilesEach> b;
};

inline WarpMatrices warp_matrices(Numbers format, int first) {
  WarpMatrices made;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int group = lane / 4, place = lane % 4, thread = first + lane;
    for (int i = 0; i < kTilesEach; ++i) {
      for (int k = 0; k < 4; ++k) {
        made.a[static_cast<std::size_t>(16 * i + group + k % 2 * 8)]
              [static_cast<std::size_t>(place + k / 2 * 4)] =
            rounded(format, static_cast<float>(1 + thread + 4 * i + k));
      }
      auto& column = made.b[static_cast<std::size_t>(8 * i + group)];
      column[static_cast<std::size_t>(place)] =
          rounded(format, 0.5f / static_cast<float>(thread + 1 + i));
      column[static_cast<std::size_t>(place + 4)] = 0.25;
    }
  }
  return made;
}

/// The sum of what a thread of a block holds of the products of one round. Those of exact numbers
/// are of TF32.
inline double sum_of_thread(Numbers numbers, int thread) {
  const bool pairs = numbers == Numbers::bf16;
  const int lane = thread % kLanes;
  const WarpMatrices of = warp_matrices(pairs ? numbers : Numbers::tf32, thread - lane);
  double sum = 0;
  for (int i = 0; i < kTilesEach; ++i) {
    for (int j = 0; j < kTilesEach; ++j) {
      for (int r = 0; r < 4; ++r) {
        const auto& row = of.a[static_cast<std::size_t>(16 * i + lane / 4 + r / 2 * 8)];
        const auto& column = of.b[static_cast<std::size_t>(8 * j + lane % 4 * 2 + r % 2)];
        for (std::size_t k = 0; k < 8; ++k) sum += row[k] * column[k];
      }
    }
  }
  return pairs ? 2 * sum : sum;
}

}  // namespace cputrain::cuda
