#pragma once

#include <type_traits>

#include "backends/cuda/device/tensor_core.h"
#include "backends/cuda/kernels/indices.h"

/// How threads share a map: each has a pack, 16 bytes of the channels of one position, and
/// neighbours have neighbours, so that a warp reads and writes whole lines of memory.
namespace cputrain::cuda {

/// A number that was stored.
CPUTRAIN_DEVICE float number_of(float stored) { return stored; }
CPUTRAIN_DEVICE float number_of(Bf16 stored) {
  return __uint_as_float(unsigned{stored.bits} << 16);
}

/// Number `i` of those that lie in pairs.
CPUTRAIN_DEVICE float number_of_pair(unsigned pair, int i) {
  return __uint_as_float(i % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
}

/// A number to be stored.
template <class N>
CPUTRAIN_DEVICE typename N::Stored rounded(float number) {
  if constexpr (N::kNumbers == Numbers::bf16) {
    return {static_cast<std::uint16_t>(bf16_pair(number, 0))};
  } else if constexpr (N::kNumbers == Numbers::tf32) {
    return tf32_value(to_tf32(number));
  } else {
    return number;
  }
}

/// Neighbours, by default as many as fit 16 bytes: in memory as `N` stores them, in registers
/// floats. All of them are loaded at once, so they lie on a boundary of their size.
template <class N, int kSize = kNumbersOfChunk<N>>
struct Pack {
  using Stored = typename N::Stored;
  static constexpr int kCount = kSize;

  float of[kCount];

  CPUTRAIN_DEVICE static Pack load(const Stored* p) {
    const Memory memory = *reinterpret_cast<const Memory*>(p);
    Pack pack;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if constexpr (kPairs) {
        pack.of[i] = number_of_pair(memory.of[i / 2], i);
      } else {
        pack.of[i] = number_of(memory.of[i]);
      }
    }
    return pack;
  }

  /// Rounds. What was loaded and not changed stays as it was.
  CPUTRAIN_DEVICE void store(Stored* p) const {
    Memory memory;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      if constexpr (kPairs) {
        memory.of[w] = bf16_pair(of[2 * w], of[2 * w + 1]);
      } else {
        memory.of[w] = rounded<N>(of[w]);
      }
    }
    *reinterpret_cast<Memory*>(p) = memory;
  }

  /// As they are once they were stored.
  CPUTRAIN_DEVICE Pack stored() const {
    Pack pack;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if constexpr (kPairs) {
        pack.of[i] = number_of_pair(bf16_pair(of[i / 2 * 2], of[i / 2 * 2 + 1]), i);
      } else {
        pack.of[i] = number_of(rounded<N>(of[i]));
      }
    }
    return pack;
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

  /// The same numbers, which are stored in another way.
  template <class Other>
  CPUTRAIN_DEVICE Pack<Other, kCount> as() const {
    Pack<Other, kCount> pack;
#pragma unroll
    for (int i = 0; i < kCount; ++i) pack.of[i] = of[i];
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
  /// An instruction rounds two numbers to bf16.
  static constexpr bool kPairs = N::kNumbers == Numbers::bf16 && kCount % 2 == 0;
  static constexpr int kWords = kPairs ? kCount / 2 : kCount;
  struct alignas(kCount * sizeof(Stored)) Memory {
    std::conditional_t<kPairs, unsigned, Stored> of[kWords];
  };
};

/// What is in the target, where gradients are added to it; else zeros.
template <class N>
CPUTRAIN_DEVICE Pack<N> begin_sum(const typename N::Stored* target, bool add) {
  return add ? Pack<N>::load(target) : Pack<N>::all(0);
}

/// A block has kAcross packs of channels; kDown threads share what is summed of each.
inline constexpr int kAcross = 8, kDown = 32;

/// The sum over those threads, in halves, for the first of them (y is 0). All take part.
template <class N>
CPUTRAIN_DEVICE Pack<N> sum_down(Pack<N> sum) {
  auto& sums = shared<Pack<N>[kDown][kAcross]>();
  const auto [x, y] = ThreadNumber::of_thread();
  sums[y][x] = sum;
  for (int half = kDown / 2; half > 0; half /= 2) {
    __syncthreads();
    if (y < half) {
      sum += sums[y + half][x];
      sums[y][x] = sum;
    }
  }
  return sum;
}

/// Launches a thread for each pack of `positions` (of all images together, fewer than 2^31) with so
/// many channels; nothing for none.
template <class N, class... Parameters, class... Arguments>
void launch_packs(Stream stream, const char* name, void (*kernel)(Parameters...), int positions,
                  int channels, Arguments... arguments) {
  constexpr int kWidest = 64;
  if (positions == 0) return;
  const int packs = channels / kNumbersOfChunk<N>, tiles = pieces(packs, kWidest);
  const int x = pieces(packs, tiles), y = kPackThreads / x;
  launch(stream, name, kernel, grid_of(pieces(positions, y), tiles), grid_of(x, y), 0,
         arguments...);
}

/// Where a thread's pack lies.
struct PackPlace {
  int position;
  int channel;  ///< its first

  template <class N>
  CPUTRAIN_DEVICE static PackPlace of_thread() {
    const auto block = BlockNumber::of_thread();
    const auto size = BlockSize::of_thread();
    const auto thread = ThreadNumber::of_thread();
    return {block.x * size.y + thread.y, (block.y * size.x + thread.x) * kNumbersOfChunk<N>};
  }
  CPUTRAIN_DEVICE bool inside(int positions, int channels) const {
    return position < positions && channel < channels;
  }
  CPUTRAIN_DEVICE std::int64_t offset(int channels) const {
    return offset_of_row(position, channels) + channel;
  }
};

}  // namespace cputrain::cuda
