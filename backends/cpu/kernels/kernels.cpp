#include "backends/cpu/kernels/kernels.h"

#include "backends/cpu/kernels/clones.h"

namespace cputrain::cpu::kernels {

CPUTRAIN_CLONES
void split_pixels(const std::uint8_t* rgb, std::size_t width, std::size_t plane, float scale,
                  float offset, float* dst) {
  float* __restrict red = dst;
  float* __restrict green = dst + plane;
  float* __restrict blue = dst + 2 * plane;
  for (std::size_t x = 0; x < width; ++x) {
    red[x] = static_cast<float>(rgb[3 * x]) * scale + offset;
    green[x] = static_cast<float>(rgb[3 * x + 1]) * scale + offset;
    blue[x] = static_cast<float>(rgb[3 * x + 2]) * scale + offset;
  }
}

CPUTRAIN_CLONES
void relu(float* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) values[i] = values[i] < 0 ? 0 : values[i];
}

CPUTRAIN_CLONES
void relu_backward(const float* __restrict dst, float* __restrict diff, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) diff[i] = dst[i] > 0 ? diff[i] : 0;
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

}  // namespace cputrain::cpu::kernels
