#pragma once

#include <cstddef>
#include <cstdint>

#include "core/shape.h"

/// The loops that are not the library's. Each is compiled for AVX-512, AVX2 and plain x86-64, and
/// the right one is chosen when the program starts. They run on the calling thread.
namespace cputrain::cpu::kernels {

/// Splits one row of `width` RGB pixels into three planes: channel * scale + offset.
void split_pixels(const std::uint8_t* rgb, std::size_t width, std::size_t plane, float scale,
                  float offset, float* dst);

/// values = max(values, 0); NaN stays, so that divergence is seen
void relu(float* values, std::size_t n);
/// diff = dst > 0 ? diff : 0, where dst is the ReLU's output
void relu_backward(const float* dst, float* diff, std::size_t n);
/// values *= kept ? scale : 0
void keep(const std::uint8_t* kept, float scale, float* values, std::size_t n);
/// dst = a + b
void sum(const float* a, const float* b, float* dst, std::size_t n);
/// sums += values
void add(const float* values, float* sums, std::size_t n);

}  // namespace cputrain::cpu::kernels
