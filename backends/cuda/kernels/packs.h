#pragma once

#include "backends/cuda/device/tensor_core.h"
#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/shapes.h"

/// How threads share a map: each has a pack, 16 bytes of the channels of one position, and
/// neighbours have neighbours, so that a warp reads and writes whole lines of memory.
namespace cputrain::cuda {

inline constexpr int kPackThreads = 256, kPackBytes = 16;

/// As many numbers as fit 16 bytes: in memory as `N` says, in registers floats.
template <class N>
struct Pack {
  using Stored = typename N::Stored;
  static constexpr int kCount = kPackBytes / static_cast<int>(sizeof(Stored));

  float of[kCount];

  /// `p` is on a 16-byte boundary.
  CPUTRAIN_DEVICE static Pack load(const Stored* p) {
    const Words words = *reinterpret_cast<const Words*>(p);
    Pack pack;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      if constexpr (N::kNumbers == Numbers::bf16) {
        pack.of[2 * w] = __uint_as_float(words.of[w] << 16);
        pack.of[2 * w + 1] = __uint_as_float(words.of[w] & 0xffff0000u);
      } else {
        pack.of[w] = __uint_as_float(words.of[w]);
      }
    }
    return pack;
  }

  /// Rounds. What was loaded and not changed stays as it was.
  CPUTRAIN_DEVICE void store(Stored* p) const {
    Words words;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      if constexpr (N::kNumbers == Numbers::bf16) {
        words.of[w] = bf16_pair(of[2 * w], of[2 * w + 1]);
      } else if constexpr (N::kNumbers == Numbers::tf32) {
        words.of[w] = __float_as_uint(tf32_value(to_tf32(of[w])));
      } else {
        words.of[w] = __float_as_uint(of[w]);
      }
    }
    *reinterpret_cast<Words*>(p) = words;
  }

  /// As many floats, on a 16-byte boundary.
  CPUTRAIN_DEVICE static Pack of_floats(const float* p) {
    Pack pack;
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 quad = *reinterpret_cast<const float4*>(p + i);
      pack.of[i] = quad.x;
      pack.of[i + 1] = quad.y;
      pack.of[i + 2] = quad.z;
      pack.of[i + 3] = quad.w;
    }
    return pack;
  }

  CPUTRAIN_DEVICE static Pack all(float value) {
    Pack pack;
#pragma unroll
    for (float& number : pack.of) number = value;
    return pack;
  }

  CPUTRAIN_DEVICE Pack& operator+=(const Pack& other) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) of[i] += other.of[i];
    return *this;
  }
  CPUTRAIN_DEVICE Pack& operator/=(float divisor) {
#pragma unroll
    for (float& number : of) number /= divisor;
    return *this;
  }

 private:
  static constexpr int kWords = kPackBytes / 4;
  struct alignas(kPackBytes) Words {
    unsigned of[kWords];
  };
};

/// The launch of a thread for each pack of `positions` (of all images together, fewer than 2^31)
/// with so many channels.
struct PackLaunch {
  dim3 grid, block;

  template <class N>
  static PackLaunch over(int positions, int channels) {
    constexpr std::size_t kWidest = 64;
    const auto packs = static_cast<std::size_t>(channels / Pack<N>::kCount);
    const std::size_t tiles = pieces(packs, kWidest);
    const std::size_t x = pieces(packs, tiles), y = kPackThreads / x;
    const std::size_t blocks = pieces(static_cast<std::size_t>(positions), y);
    return {dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(tiles)),
            dim3(static_cast<unsigned>(x), static_cast<unsigned>(y))};
  }
};

/// Where a thread's pack lies.
struct PackPlace {
  unsigned position;
  int channel;  ///< its first

  template <class N>
  CPUTRAIN_DEVICE static PackPlace of_thread() {
    return {blockIdx.x * blockDim.y + threadIdx.y,
            static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * Pack<N>::kCount};
  }
  CPUTRAIN_DEVICE bool inside(int positions, int channels) const {
    return position < static_cast<unsigned>(positions) && channel < channels;
  }
  CPUTRAIN_DEVICE std::size_t offset(int channels) const {
    return static_cast<std::size_t>(position) * static_cast<std::size_t>(channels) +
           static_cast<std::size_t>(channel);
  }
};

}  // namespace cputrain::cuda
