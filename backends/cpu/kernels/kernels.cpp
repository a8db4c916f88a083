#include "backends/cpu/kernels/kernels.h"

#include <cmath>
#include <variant>

#include "backends/cpu/kernels/clones.h"

namespace cputrain::cpu::kernels {
namespace {

[[gnu::always_inline]] inline float silu_of(float x) { return x / (1 + std::exp(-x)); }

[[gnu::always_inline]] inline float silu_slope(float x) {
  const float sigmoid = 1 / (1 + std::exp(-x));
  return sigmoid * (1 + x * (1 - sigmoid));
}

// Rectifiers. Overloads rather than templates: only functions can be cloned.

CPUTRAIN_CLONES
void bend(const model::Relu&, float* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) values[i] = values[i] < 0 ? 0 : values[i];
}

CPUTRAIN_CLONES
void bend_back(const model::Relu&, const float* __restrict dst, float* __restrict diff,
               std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) diff[i] = dst[i] > 0 ? diff[i] : 0;
}

CPUTRAIN_CLONES
void bend(const model::Relu6&, float* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float value = values[i] < 0 ? 0 : values[i];
    values[i] = value > 6 ? 6 : value;
  }
}

CPUTRAIN_CLONES
void bend_back(const model::Relu6&, const float* __restrict dst, float* __restrict diff,
               std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) diff[i] = (dst[i] > 0) & (dst[i] < 6) ? diff[i] : 0;
}

CPUTRAIN_CLONES
void bend(const model::Relu&, Bf16* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float value = to_float(values[i]);
    values[i].bits = value < 0 ? 0 : values[i].bits;
  }
}

CPUTRAIN_CLONES
void bend_back(const model::Relu&, const Bf16* __restrict dst, Bf16* __restrict diff,
               std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) diff[i].bits = to_float(dst[i]) > 0 ? diff[i].bits : 0;
}

CPUTRAIN_CLONES
void bend(const model::Relu6&, Bf16* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float value = to_float(values[i]);
    const std::uint16_t positive = value < 0 ? 0 : values[i].bits;
    values[i].bits = value > 6 ? 0x40c0 : positive;  // 6
  }
}

CPUTRAIN_CLONES
void bend_back(const model::Relu6&, const Bf16* __restrict dst, Bf16* __restrict diff,
               std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float value = to_float(dst[i]);
    diff[i].bits = (value > 0) & (value < 6) ? diff[i].bits : 0;
  }
}

CPUTRAIN_CLONES
void bend(const model::LeakyRelu& l, float* values, std::size_t n) {
  const float slope = l.slope;
  for (std::size_t i = 0; i < n; ++i) values[i] = values[i] > 0 ? values[i] : slope * values[i];
}

CPUTRAIN_CLONES
void bend_back(const model::LeakyRelu& l, const float* __restrict dst, float* __restrict diff,
               std::size_t n) {
  const float slope = l.slope;
  for (std::size_t i = 0; i < n; ++i) diff[i] = dst[i] > 0 ? diff[i] : slope * diff[i];
}

CPUTRAIN_CLONES
void bend(const model::LeakyRelu& l, Bf16* values, std::size_t n) {
  const float slope = l.slope;
  for (std::size_t i = 0; i < n; ++i) {
    const float value = to_float(values[i]);
    set(values[i], value > 0 ? value : slope * value);
  }
}

CPUTRAIN_CLONES
void bend_back(const model::LeakyRelu& l, const Bf16* __restrict dst, Bf16* __restrict diff,
               std::size_t n) {
  const float slope = l.slope;
  for (std::size_t i = 0; i < n; ++i) {
    const float own = to_float(diff[i]);
    set(diff[i], to_float(dst[i]) > 0 ? own : slope * own);
  }
}

}  // namespace

template <class Number>
void rectify(const model::Rectifier& rectifier, Number* values, std::size_t n) {
  std::visit([&](const auto& layer) { bend(layer, values, n); }, rectifier);
}

template <class Number>
void rectify_backward(const model::Rectifier& rectifier, const Number* dst, Number* diff,
                      std::size_t n) {
  std::visit([&](const auto& layer) { bend_back(layer, dst, diff, n); }, rectifier);
}

template void rectify(const model::Rectifier&, float*, std::size_t);
template void rectify(const model::Rectifier&, Bf16*, std::size_t);
template void rectify_backward(const model::Rectifier&, const float*, float*, std::size_t);
template void rectify_backward(const model::Rectifier&, const Bf16*, Bf16*, std::size_t);

CPUTRAIN_CLONES
void split_pixels(const std::uint8_t* rgb, std::size_t width, std::size_t plane,
                  const PerColour& scale, const PerColour& offset, float* dst) {
  float* __restrict red = dst;
  float* __restrict green = dst + plane;
  float* __restrict blue = dst + 2 * plane;
  for (std::size_t x = 0; x < width; ++x) {
    red[x] = static_cast<float>(rgb[3 * x]) * scale.of[0] + offset.of[0];
    green[x] = static_cast<float>(rgb[3 * x + 1]) * scale.of[1] + offset.of[1];
    blue[x] = static_cast<float>(rgb[3 * x + 2]) * scale.of[2] + offset.of[2];
  }
}

CPUTRAIN_CLONES
void silu(const float* __restrict src, float* __restrict dst, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = silu_of(src[i]);
}

CPUTRAIN_CLONES
void silu_backward(const float* __restrict src, const float* __restrict diff_dst,
                   float* __restrict diff_src, bool adds, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    diff_src[i] = (adds ? diff_src[i] : 0) + diff_dst[i] * silu_slope(src[i]);
  }
}

CPUTRAIN_CLONES
void keep(const std::uint8_t* __restrict kept, float scale, float* __restrict values,
          std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) values[i] = kept[i] ? values[i] * scale : 0;
}

CPUTRAIN_CLONES
void sum(const float* __restrict a, const float* __restrict b, float* __restrict dst,
         std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = a[i] + b[i];
}

CPUTRAIN_CLONES
void add(const float* __restrict values, float* __restrict sums, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sums[i] += values[i];
}

// The same of 16-bit numbers.

CPUTRAIN_CLONES
void silu(const Bf16* __restrict src, Bf16* __restrict dst, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) set(dst[i], silu_of(to_float(src[i])));
}

CPUTRAIN_CLONES
void silu_backward(const Bf16* __restrict src, const Bf16* __restrict diff_dst,
                   Bf16* __restrict diff_src, bool adds, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float own = to_float(diff_dst[i]) * silu_slope(to_float(src[i]));
    set(diff_src[i], (adds ? to_float(diff_src[i]) : 0) + own);
  }
}

CPUTRAIN_CLONES
void keep(const std::uint8_t* __restrict kept, float scale, Bf16* __restrict values,
          std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) set(values[i], kept[i] ? to_float(values[i]) * scale : 0);
}

CPUTRAIN_CLONES
void sum(const Bf16* __restrict a, const Bf16* __restrict b, Bf16* __restrict dst, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) set(dst[i], to_float(a[i]) + to_float(b[i]));
}

CPUTRAIN_CLONES
void add(const Bf16* __restrict values, Bf16* __restrict sums, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) set(sums[i], to_float(sums[i]) + to_float(values[i]));
}

CPUTRAIN_CLONES
void add(const float* __restrict values, Bf16* __restrict sums, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) set(sums[i], to_float(sums[i]) + values[i]);
}

CPUTRAIN_CLONES
void convert(const Bf16* __restrict from, float* __restrict to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
}

CPUTRAIN_CLONES
void convert(const float* __restrict from, Bf16* __restrict to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) set(to[i], from[i]);
}

void fetch(const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes; i += kLine) {
    asm volatile("" : : "r"(from[i]));  // the compiler must load it
  }
}

}  // namespace cputrain::cpu::kernels
