#include "backends/cuda/kernels/batch_norm/channel_parts.h"

namespace cputrain::cuda {
namespace {

/// Positions that a thread adds up by themselves.
inline constexpr int kMeasuredAtOnce = 8, kSlopesAtOnce = 4;

/// Up to kMeasuredAtOnce positions from `first` on, exactly as defined: they are in registers, and
/// all of them are on their way before the first is added.
template <class N>
CPUTRAIN_DEVICE Moments<N> moments_of(const ThreadsPart& t, int first, const ChannelSums& sums,
                                      const typename N::Stored* __restrict__ map) {
  Pack<N> values[kMeasuredAtOnce];
  Moments<N> made = Moments<N>::none();
#pragma unroll
  for (int k = 0; k < kMeasuredAtOnce; ++k) {
    const int position = first + k * t.step;
    const bool inside = position < t.end;
    values[k] = inside ? Pack<N>::load(map + t.offset(position, sums)) : Pack<N>::all(0);
    made.count += inside ? 1 : 0;
  }
#pragma unroll
  for (const Pack<N>& value : values) made.mean += value;
  made.mean /= made.count;
#pragma unroll
  for (int k = 0; k < kMeasuredAtOnce; ++k) {
    if (first + k * t.step >= t.end) break;
#pragma unroll
    for (int i = 0; i < Pack<N>::kCount; ++i) {
      const float apart = values[k].of[i] - made.mean.of[i];
      made.squares.of[i] += apart * apart;
    }
  }
  return made;
}

template <class N>
__global__ void __launch_bounds__(kPackThreads, kBlocksEach)
    measure_channels_kernel(ChannelSums sums, const typename N::Stored* __restrict__ map) {
  const auto t = ThreadsPart::of_thread<N>(sums);
  Moments<N> own = Moments<N>::none();
  for (int first = t.first; first < t.end; first += kMeasuredAtOnce * t.step) {
    own.merge(moments_of<N>(t, first, sums, map));
  }
  write_part<N>(own, t.channel, sums);
}

/// What slopes are sums of, with the factors of a thread's channels.
template <class N>
struct SlopeMaps {
  const BatchNormPass& pass;
  const typename N::Stored *src, *output;
  typename N::Stored* diff_dst;
  Normalization<N> known;

  /// Adds kLoads positions from `first` on. All are on their way before the first is added, which
  /// keeps the memory busy. What lies behind the part's end adds zeros.
  template <int kLoads>
  CPUTRAIN_DEVICE void add_to(Slopes<N>& few, const ThreadsPart& t, int first,
                              const ChannelSums& sums) const {
    Pack<N> values[kLoads], diffs[kLoads], made[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const int position = first + k * t.step;
      const bool inside = position < t.end;
      const std::int64_t offset = t.offset(position, sums);
      values[k] = inside ? Pack<N>::load(src + offset) : Pack<N>::all(0);
      diffs[k] = inside ? Pack<N>::load(diff_dst + offset) : Pack<N>::all(0);
      made[k] = inside && output ? Pack<N>::load(output + offset) : Pack<N>::all(0);
    }
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
#pragma unroll
      for (int i = 0; i < Pack<N>::kCount; ++i) {
        const float cut = output ? made[k].of[i] : known.normalized(i, values[k].of[i]);
        if (pass.relu && !(cut > 0)) diffs[k].of[i] = 0;
        few.sum.of[i] += diffs[k].of[i];
        few.product.of[i] += diffs[k].of[i] * (values[k].of[i] - known.mean.of[i]);
      }
      const int position = first + k * t.step;
      if (output && position < t.end) diffs[k].store(diff_dst + t.offset(position, sums));
    }
  }
};

template <class N>
__global__ void __launch_bounds__(kPackThreads, kBlocksEach)
    sum_slopes_kernel(ChannelSums sums, BatchNormPass pass,
                      const typename N::Stored* __restrict__ src,
                      const typename N::Stored* __restrict__ output, typename N::Stored* diff_dst) {
  constexpr int kLoads = kSlopesAtOnce * 4 / Pack<N>::kCount;  // what registers have room for
  const auto t = ThreadsPart::of_thread<N>(sums);
  Slopes<N> own = Slopes<N>::none();
  if (t.first < t.end) {
    const SlopeMaps<N> maps{pass, src, output, diff_dst,
                            Normalization<N>::load(pass.factors, t.channel)};
    for (int first = t.first; first < t.end; first += kSlopesAtOnce * t.step) {
      Slopes<N> few = Slopes<N>::none();
#pragma unroll
      for (int k = 0; k < kSlopesAtOnce; k += kLoads) {
        maps.template add_to<kLoads>(few, t, first + k * t.step, sums);
      }
      own.merge(few);
    }
  }
  write_part<N>(own, t.channel, sums);
}

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

ChannelSums plan_channel_sums(Numbers numbers, int positions, int channels, int multiprocessors) {
  return with_numbers(numbers, [&]<class N>(N) {
    const SumLaunch l = SumLaunch::over<N>(channels);
    const std::int64_t all = positions, busy = pieces(kBlocksEach * multiprocessors, l.tiles);
    const std::int64_t of_part = pieces(pieces(all, busy), l.rows) * l.rows;
    ChannelSums sums{.channels = channels};
    sums.parts = static_cast<int>(pieces(all, of_part));
    sums.positions = positions;
    sums.of_part = of_part;
    return sums;
  });
}

void measure_channels(Stream stream, Numbers numbers, const ChannelSums& sums, const void* map) {
  with_numbers(numbers, [&]<class N>(N) {
    const SumLaunch l = SumLaunch::over<N>(sums.channels);
    launch(stream, "measure_channels", measure_channels_kernel<N>, l.grid(sums), l.block(), 0, sums,
           map);
  });
}

void sum_slopes(Stream stream, Numbers numbers, const NormSlopes& slopes, void* diff_dst) {
  with_numbers(numbers, [&]<class N>(N) {
    const SumLaunch l = SumLaunch::over<N>(slopes.sums.channels);
    launch(stream, "sum_slopes", sum_slopes_kernel<N>, l.grid(slopes.sums), l.block(), 0,
           slopes.sums, slopes.pass, slopes.src, slopes.output, diff_dst);
  });
}

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
