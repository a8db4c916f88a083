#include <bit>
#include <cstring>

#include "emulated/warp.h"

/// Products of a warp's tiles of fragments, laid out as the PTX ISA says for mma.m16n8k8 of TF32
/// and mma.m16n8k16 of bf16.
namespace cputrain::emulated {
namespace {

constexpr int kMost = 8;  ///< fragments along a side

/// What each lane has is gathered into plain matrices.
struct Tiles {
  alignas(64) float a[16 * kMost * 16];         ///< [16 * rows][depth]
  alignas(64) float b[16 * 8 * kMost];          ///< [depth][8 * columns]
  alignas(64) float c[16 * kMost * 8 * kMost];  ///< [16 * rows][8 * columns]
};

/// Loaders choose by processor; sanitized programs cannot (their runtime is not up yet). Products
/// and sums are rounded one by one, so that all processors get the same bits.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
[[gnu::target_clones("arch=x86-64-v4", "avx2", "default")]]
#endif
[[gnu::optimize("O3", "fp-contract=off")]] void
multiply(const float* __restrict a, const float* __restrict b, float* __restrict c, int rows,
         int columns, int depth) {
  for (int y = 0; y < rows; ++y) {
    float* __restrict out = c + y * columns;
    for (int k = 0; k < depth; ++k) {
      const float factor = a[y * depth + k];
      const float* __restrict in = b + k * columns;
      for (int x = 0; x < columns; ++x) out[x] += factor * in[x];
    }
  }
}

float low_half(unsigned u) { return std::bit_cast<float>(u << 16); }
float high_half(unsigned u) { return std::bit_cast<float>(u & 0xffff0000u); }
/// The unit ignores the bits that TF32 does not have.
float tf32(unsigned u) { return std::bit_cast<float>(u & 0xffffe000u); }

template <bool kBf16>
void gather_factors(Tiles& t, const WarpProduct& s, int lane) {
  constexpr int kDepth = kBf16 ? 16 : 8;
  const int group = lane / 4, in_group = lane % 4, columns = 8 * s.columns;
  for (int i = 0; i < s.rows; ++i) {
    for (int r = 0; r < 4; ++r) {
      float* row = t.a + (16 * i + group + 8 * (r & 1)) * kDepth;
      const unsigned u = s.a[4 * i + r];
      if constexpr (kBf16) {
        row[2 * in_group + 8 * (r >> 1)] = low_half(u);
        row[2 * in_group + 8 * (r >> 1) + 1] = high_half(u);
      } else {
        row[in_group + 4 * (r >> 1)] = tf32(u);
      }
    }
  }
  for (int j = 0; j < s.columns; ++j) {
    for (int r = 0; r < 2; ++r) {
      float* column = t.b + 8 * j + group;
      const unsigned u = s.b[2 * j + r];
      if constexpr (kBf16) {
        column[(2 * in_group + 8 * r) * columns] = low_half(u);
        column[(2 * in_group + 8 * r + 1) * columns] = high_half(u);
      } else {
        column[(in_group + 4 * r) * columns] = tf32(u);
      }
    }
  }
}

/// Calls f(sum of the lane, its place in the tile) for pairs.
template <class F>
void for_sums(Tiles& t, const WarpProduct& s, int lane, const F& f) {
  const int group = lane / 4, in_group = lane % 4, columns = 8 * s.columns;
  for (int i = 0; i < s.rows; ++i) {
    for (int j = 0; j < s.columns; ++j) {
      float* acc = s.acc + 4 * (i * s.columns + j);
      float* out = t.c + (16 * i + group) * columns + 8 * j + 2 * in_group;
      f(acc, out);
      f(acc + 2, out + 8 * columns);
    }
  }
}

template <bool kBf16>
void multiply_tiles(void** slots, std::uint32_t) {
  static Tiles& tiles = *new Tiles;
  const auto& first = *static_cast<const WarpProduct*>(slots[0]);
  constexpr std::size_t kPair = 2 * sizeof(float);
  for (int lane = 0; lane < 32; ++lane) {
    const auto& s = *static_cast<const WarpProduct*>(slots[lane]);
    gather_factors<kBf16>(tiles, s, lane);
    for_sums(tiles, s, lane, [](const float* acc, float* out) { std::memcpy(out, acc, kPair); });
  }
  multiply(tiles.a, tiles.b, tiles.c, 16 * first.rows, 8 * first.columns, kBf16 ? 16 : 8);
  for (int lane = 0; lane < 32; ++lane) {
    for_sums(tiles, *static_cast<const WarpProduct*>(slots[lane]), lane,
             [](float* acc, const float* out) { std::memcpy(acc, out, kPair); });
  }
}

}  // namespace

void product_of_tf32(WarpProduct& mine, Place at) {
  if (mine.rows > kMost || mine.columns > kMost) kernel_fault("tile of a warp is too large");
  collective(~0u, "mma.m16n8k8", at, &mine, multiply_tiles<false>);
}
void product_of_bf16(WarpProduct& mine, Place at) {
  if (mine.rows > kMost || mine.columns > kMost) kernel_fault("tile of a warp is too large");
  collective(~0u, "mma.m16n8k16", at, &mine, multiply_tiles<true>);
}

}  // namespace cputrain::emulated
