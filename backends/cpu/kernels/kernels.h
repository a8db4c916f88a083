#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/bf16.h"
#include "core/shape.h"

/// The loops that are not the library's. Each is compiled for AVX-512, AVX2 and plain x86-64, and
/// the right one is chosen when the program starts. They run on the calling thread.
namespace cputrain::cpu::kernels {

/// Splits one row of `width` RGB pixels into three planes: channel * scale + offset.
void split_pixels(const std::uint8_t* rgb, std::size_t width, std::size_t plane,
                  const PerColour& scale, const PerColour& offset, float* dst);

// Numbers of 16 bits are computed as floats, and the result is rounded to the nearest.

/// values = max(values, 0); NaN stays, so that divergence is seen
void relu(float* values, std::size_t n);
void relu(Bf16* values, std::size_t n);
/// diff = dst > 0 ? diff : 0, where dst is the ReLU's output
void relu_backward(const float* dst, float* diff, std::size_t n);
void relu_backward(const Bf16* dst, Bf16* diff, std::size_t n);
/// values = min(max(values, 0), 6); NaN stays
void relu6(float* values, std::size_t n);
void relu6(Bf16* values, std::size_t n);
/// diff = 0 < dst < 6 ? diff : 0, where dst is what relu6() made
void relu6_backward(const float* dst, float* diff, std::size_t n);
void relu6_backward(const Bf16* dst, Bf16* diff, std::size_t n);
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
