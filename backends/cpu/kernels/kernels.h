#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/bf16.h"
#include "core/shape.h"
#include "model/layers/pointwise.h"

/// The loops that are not the library's. Each is compiled for AVX-512, AVX2 and plain x86-64, and
/// the right one is chosen when the program starts. They run on the calling thread.
namespace cputrain::cpu::kernels {

/// Splits one row of `width` RGB pixels into three planes: channel * scale + offset.
void split_pixels(const std::uint8_t* rgb, std::size_t width, std::size_t plane,
                  const PerColour& scale, const PerColour& offset, float* dst);

// Numbers of 16 bits are computed as floats, and the result is rounded to the nearest.

/// values = what the rectifier makes of them; NaN stays, so that divergence is seen
template <class Number>
void rectify(const model::Rectifier&, Number* values, std::size_t n);
/// diff = the gradient of what the rectifier read, where dst is what it made
template <class Number>
void rectify_backward(const model::Rectifier&, const Number* dst, Number* diff, std::size_t n);
/// dst = src * sigmoid(src)
void silu(const float* src, float* dst, std::size_t n);
void silu(const Bf16* src, Bf16* dst, std::size_t n);
/// diff_src = diff_dst * the derivative at src, added to what is there if so asked
void silu_backward(const float* src, const float* diff_dst, float* diff_src, bool adds,
                   std::size_t n);
void silu_backward(const Bf16* src, const Bf16* diff_dst, Bf16* diff_src, bool adds, std::size_t n);
/// values *= kept ? scale : 0
void keep(const std::uint8_t* kept, float scale, float* values, std::size_t n);
void keep(const std::uint8_t* kept, float scale, Bf16* values, std::size_t n);
/// dst = a + b
void sum(const float* a, const float* b, float* dst, std::size_t n);
void sum(const Bf16* a, const Bf16* b, Bf16* dst, std::size_t n);
/// sums += values
void add(const float* values, float* sums, std::size_t n);
void add(const Bf16* values, Bf16* sums, std::size_t n);
void add(const float* values, Bf16* sums, std::size_t n);
/// to = from
void convert(const Bf16* from, float* to, std::size_t n);
void convert(const float* from, Bf16* to, std::size_t n);

/// Brings memory into the caches, by loads: processors drop most of so many prefetches.
void fetch(const std::byte* from, std::size_t bytes);

}  // namespace cputrain::cpu::kernels
