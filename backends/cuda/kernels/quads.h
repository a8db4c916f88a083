#pragma once

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/shapes.h"

/// How threads share a map: each has a quad, four channels (16 bytes) of one position, and
/// neighbours have neighbours, so that a warp reads and writes whole lines of memory.
namespace cputrain::cuda {

inline constexpr int kQuad = 4;
inline constexpr int kQuadThreads = 256;

/// The launch of a thread for each quad of `positions` (of all images together, fewer than 2^31)
/// with so many channels.
struct QuadLaunch {
  dim3 grid, block;
};
inline QuadLaunch quad_launch(int positions, int channels) {
  constexpr std::size_t kWidest = 64;
  const std::size_t quads = static_cast<std::size_t>(channels / kQuad);
  const std::size_t tiles = pieces(quads, kWidest);
  const std::size_t x = pieces(quads, tiles), y = kQuadThreads / x;
  const std::size_t blocks = pieces(static_cast<std::size_t>(positions), y);
  return {dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(tiles)),
          dim3(static_cast<unsigned>(x), static_cast<unsigned>(y))};
}

struct Quad {
  unsigned position;
  int channel;  ///< the first of four

  CPUTRAIN_DEVICE bool inside(int positions, int channels) const {
    return position < static_cast<unsigned>(positions) && channel < channels;
  }
  CPUTRAIN_DEVICE std::size_t offset(int channels) const {
    return static_cast<std::size_t>(position) * static_cast<std::size_t>(channels) +
           static_cast<std::size_t>(channel);
  }
};

CPUTRAIN_DEVICE Quad quad_of_thread() {
  return {blockIdx.x * blockDim.y + threadIdx.y,
          static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * kQuad};
}

CPUTRAIN_DEVICE float4 load_quad(const float* p) { return *reinterpret_cast<const float4*>(p); }
CPUTRAIN_DEVICE void store_quad(float* p, const float4& quad) {
  *reinterpret_cast<float4*>(p) = quad;
}

CPUTRAIN_DEVICE float4 quad_of(float x, float y, float z, float w) {
  float4 quad;
  quad.x = x;
  quad.y = y;
  quad.z = z;
  quad.w = w;
  return quad;
}
CPUTRAIN_DEVICE float4 sum_of(const float4& a, const float4& b) {
  return quad_of(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
CPUTRAIN_DEVICE float4 quotient_of(const float4& a, float b) {
  return quad_of(a.x / b, a.y / b, a.z / b, a.w / b);
}

}  // namespace cputrain::cuda
