#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/batch_norm/factors.h"

namespace cputrain::cuda {
namespace {

/// A thread has so many positions, for which it loads the factors of its channels once.
inline constexpr int kPositionsEach = 4;

/// f(where the pack lies) for the positions of a thread.
template <class F>
CPUTRAIN_DEVICE void for_positions(const BatchNormPass& pass, int channel, F f) {
  const int rows = BlockSize::of_thread().y;
  const int first = block_number() * rows * kPositionsEach + ThreadNumber::of_thread().y;
#pragma unroll
  for (int k = 0; k < kPositionsEach; ++k) {
    const PackPlace place{first + k * rows, channel};
    if (!place.inside(pass.positions, pass.factors.channels)) break;
    f(place.offset(pass.factors.channels));
  }
}

template <class N>
__global__ void __launch_bounds__(kPackThreads)
    normalize_kernel(BatchNormPass pass, const typename N::Stored* __restrict__ src,
                     const typename N::Stored* __restrict__ other,
                     typename N::Stored* __restrict__ dst) {
  const int channel = PackPlace::of_thread<N>().channel;
  if (channel >= pass.factors.channels) return;
  const auto known = Normalization<N>::load(pass.factors, channel);
  for_positions(pass, channel, [&](std::int64_t offset) {
    Pack<N> values = Pack<N>::load(src + offset);
#pragma unroll
    for (int i = 0; i < Pack<N>::kCount; ++i) values.of[i] = known.normalized(i, values.of[i]);
    if (other) values += Pack<N>::load(other + offset);
    if (pass.relu) {
#pragma unroll
      for (float& number : values.of) number = number < 0 ? 0 : number;
    }
    values.store(dst + offset);
  });
}

template <class N>
__global__ void __launch_bounds__(kPackThreads)
    normalize_backward_kernel(BatchNormPass pass, const typename N::Stored* __restrict__ src,
                              const typename N::Stored* diff_dst, typename N::Stored* diff_src,
                              bool add) {
  const int channel = PackPlace::of_thread<N>().channel;
  if (channel >= pass.factors.channels) return;
  const auto known = Normalization<N>::load(pass.factors, channel);
  const auto slope = load_factors<N>(pass.factors, ChannelFactors::slope, channel);
  const auto offsets = load_factors<N>(pass.factors, ChannelFactors::offset, channel);
  for_positions(pass, channel, [&](std::int64_t offset) {
    const Pack<N> values = Pack<N>::load(src + offset);
    Pack<N> diff = Pack<N>::load(diff_dst + offset);
#pragma unroll
    for (int i = 0; i < Pack<N>::kCount; ++i) {
      const bool dead = pass.relu && !(known.normalized(i, values.of[i]) > 0);
      diff.of[i] = known.scale.of[i] * (dead ? 0 : diff.of[i]) +
                   slope.of[i] * (values.of[i] - known.mean.of[i]) + offsets.of[i];
    }
    if (add) diff += Pack<N>::load(diff_src + offset);
    diff.store(diff_src + offset);
  });
}

}  // namespace

void normalize(Stream stream, Numbers numbers, const BatchNormPass& pass, const void* src,
               const void* other, void* dst) {
  with_numbers(numbers, [&]<class N>(N) {
    launch_packs<N>(stream, "normalize", normalize_kernel<N>,
                    pieces(pass.positions, kPositionsEach), pass.factors.channels, pass, src, other,
                    dst);
  });
}

void normalize_backward(Stream stream, Numbers numbers, const BatchNormPass& pass, const void* src,
                        const void* diff_dst, void* diff_src, bool add) {
  with_numbers(numbers, [&]<class N>(N) {
    launch_packs<N>(stream, "normalize_backward", normalize_backward_kernel<N>,
                    pieces(pass.positions, kPositionsEach), pass.factors.channels, pass, src,
                    diff_dst, diff_src, add);
  });
}

}  // namespace cputrain::cuda
