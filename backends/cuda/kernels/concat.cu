#include "backends/cuda/kernels/concat.h"

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/packs.h"

namespace cputrain::cuda {
namespace {

/// `count` numbers of a position from channel `first` on, zeros behind them. kWhole: the pack lies
/// on its boundary.
template <class N, bool kWhole>
CPUTRAIN_DEVICE Pack<N> read_part(const typename N::Stored* position, int first, int count) {
  if constexpr (kWhole) {
    if (count >= Pack<N>::kCount) return Pack<N>::load(position + first);
  }
  Pack<N> values;
#pragma unroll
  for (int i = 0; i < Pack<N>::kCount; ++i) {
    values.of[i] = i < count ? number_of(position[first + i]) : 0;
  }
  return values;
}

/// A thread for each pack of the whole that has channels of the part, from channel `begin` on.
/// Behind the part it writes zeros, which are the whole's padding, or which the next part
/// overwrites.
template <class N, bool kWhole>
__global__ void __launch_bounds__(kPackThreads)
    concat_forward_kernel(ConcatPart part, int begin, int end,
                          const typename N::Stored* __restrict__ src,
                          typename N::Stored* __restrict__ dst) {
  const auto place = PackPlace::of_thread<N>();
  const int channel = begin + place.channel;
  if (place.position >= part.positions || channel >= end) return;
  const typename N::Stored* from =
      src + offset_of_row(place.position, padded_channels(part.channels));
  typename N::Stored* const target =
      dst + offset_of_row(place.position, padded_channels(part.whole)) + channel;
  const int own = channel - part.first;
  Pack<N> values;
  if constexpr (kWhole) {
    values = read_part<N, true>(from, own, part.channels - own);
  } else {
#pragma unroll
    for (int i = 0; i < Pack<N>::kCount; ++i) {
      values.of[i] = own + i < 0               ? number_of(target[i])
                     : own + i < part.channels ? number_of(from[own + i])
                                               : 0;
    }
  }
  values.store(target);
}

template <class N, bool kWhole>
__global__ void __launch_bounds__(kPackThreads)
    concat_backward_kernel(ConcatPart part, const typename N::Stored* __restrict__ diff_whole,
                           typename N::Stored* __restrict__ diff_part, bool add) {
  const auto place = PackPlace::of_thread<N>();
  const int stored = padded_channels(part.channels);
  if (!place.inside(part.positions, stored)) return;
  typename N::Stored* const target = diff_part + place.offset(stored);
  const typename N::Stored* from =
      diff_whole + offset_of_row(place.position, padded_channels(part.whole));
  Pack<N> sum =
      read_part<N, kWhole>(from, part.first + place.channel, part.channels - place.channel);
  if (add) sum += Pack<N>::load(target);
  sum.store(target);
}

/// Calls f with whether the part begins on a boundary of packs.
template <class N, class F>
void with_boundary(const ConcatPart& part, const F& f) {
  if (part.first % kNumbersOfChunk<N> == 0) return f(std::true_type{});
  f(std::false_type{});
}

}  // namespace

void concat_forward(Stream stream, Numbers numbers, const ConcatPart& part, const void* src,
                    void* dst) {
  with_stored(numbers, [&]<class N>(N) {
    with_boundary<N>(part, [&](auto whole) {
      constexpr int kCount = kNumbersOfChunk<N>;
      const int begin = part.first / kCount * kCount;
      const int last = part.first + part.channels;
      const int end = last == part.whole ? padded_channels(last) : pieces(last, kCount) * kCount;
      launch_packs<N>(stream, "concat_forward", concat_forward_kernel<N, whole>, part.positions,
                      end - begin, part, begin, end, src, dst);
    });
  });
}

void concat_backward(Stream stream, Numbers numbers, const ConcatPart& part, const void* diff_whole,
                     void* diff_part, bool add) {
  with_numbers(numbers, [&]<class N>(N) {
    with_boundary<N>(part, [&](auto whole) {
      launch_packs<N>(stream, "concat_backward", concat_backward_kernel<N, whole>, part.positions,
                      padded_channels(part.channels), part, diff_whole, diff_part, add);
    });
  });
}

}  // namespace cputrain::cuda
