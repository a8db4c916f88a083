#include "backends/cuda/kernels/layer_norm.h"

#include <cmath>

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/batch_norm/channel_parts.h"
#include "backends/cuda/kernels/warp_sums.h"

namespace cputrain::cuda {
namespace {

/// So many lanes of a warp, a power of two, share the packs of a position.
template <class N, class... Parameters, class... Arguments>
void launch_positions(Stream stream, const char* name, void (*kernel)(Parameters...),
                      const LayerNormPass& pass, Arguments... arguments) {
  const int packs = padded_channels(pass.channels) / Pack<N>::kCount;
  int lanes = 1;
  while (lanes < kWarp && lanes < packs) lanes *= 2;
  launch(stream, name, kernel, grid_of(pieces(pass.positions, kPackThreads / lanes)),
         dim3(kPackThreads), 0, pass, lanes, arguments...);
}

/// What a thread has of a position. Lanes of positions behind the last have no packs, but take part
/// in sums.
template <class N>
struct PositionLane {
  const LayerNormPass& pass;
  int lanes, lane, position, stored;

  CPUTRAIN_DEVICE PositionLane(const LayerNormPass& of, int shared_by)
      : pass(of),
        lanes(shared_by),
        lane(thread_number() % shared_by),
        position(block_number() * (kPackThreads / shared_by) + thread_number() / shared_by),
        stored(position < of.positions ? padded_channels(of.channels) : 0) {}

  CPUTRAIN_DEVICE bool is_channel(int channel) const { return channel < pass.channels; }
  /// f(first channel, where the pack lies) for the lane's packs.
  template <class F>
  CPUTRAIN_DEVICE void for_packs(F f) const {
    for (int channel = lane * Pack<N>::kCount; channel < stored;
         channel += lanes * Pack<N>::kCount) {
      f(channel, offset_of_row(position, stored) + channel);
    }
  }
  /// The mean over the channels, the same for all lanes of the position.
  CPUTRAIN_DEVICE float mean_of(float sum) const {
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, distance);
    }
    return sum / static_cast<float>(pass.channels);
  }
  CPUTRAIN_DEVICE static Pack<N> factors(const float* of, int channel, float none) {
    return of ? Pack<N>::of_floats(of + channel) : Pack<N>::all(none);
  }
};

template <class N>
__global__ void __launch_bounds__(kPackThreads)
    normalize_positions_kernel(LayerNormPass pass, int lanes,
                               const typename N::Stored* __restrict__ src,
                               typename N::Stored* __restrict__ dst) {
  const PositionLane<N> own(pass, lanes);
  float sum = 0, squares = 0;
  own.for_packs([&](int, std::int64_t place) {  // padding is zero
    const Pack<N> values = Pack<N>::load(src + place);
#pragma unroll
    for (const float value : values.of) sum += value;
  });
  const float mean = own.mean_of(sum);
  own.for_packs([&](int channel, std::int64_t place) {
    const Pack<N> values = Pack<N>::load(src + place);
#pragma unroll
    for (int i = 0; i < Pack<N>::kCount; ++i) {
      const float apart = own.is_channel(channel + i) ? values.of[i] - mean : 0;
      squares += apart * apart;
    }
  });
  const float inverse = 1 / sqrtf(own.mean_of(squares) + pass.epsilon);
  if (own.lane == 0 && own.position < pass.positions) {
    pass.mean[own.position] = mean;
    pass.inverse[own.position] = inverse;
  }
  own.for_packs([&](int channel, std::int64_t place) {
    const Pack<N> gamma = own.factors(pass.gamma, channel, 1);
    const Pack<N> beta = own.factors(pass.beta, channel, 0);
    Pack<N> values = Pack<N>::load(src + place);
#pragma unroll
    for (int i = 0; i < Pack<N>::kCount; ++i) {
      const float normal = (values.of[i] - mean) * inverse;
      values.of[i] = own.is_channel(channel + i) ? normal * gamma.of[i] + beta.of[i] : 0;
    }
    values.store(dst + place);
  });
}

/// What arrives loses its mean, and its part along the normalised numbers: mean and variance depend
/// on every channel.
template <class N>
__global__ void __launch_bounds__(kPackThreads)
    normalize_positions_backward_kernel(LayerNormPass pass, int lanes,
                                        const typename N::Stored* __restrict__ src,
                                        const typename N::Stored* __restrict__ diff_dst,
                                        typename N::Stored* __restrict__ diff_src, bool add) {
  const PositionLane<N> own(pass, lanes);
  const bool inside = own.position < pass.positions;
  const float mean = inside ? pass.mean[own.position] : 0;
  const float inverse = inside ? pass.inverse[own.position] : 0;
  float sum = 0, product = 0;
  own.for_packs([&](int channel, std::int64_t place) {  // padding of gradients is zero
    const Pack<N> gamma = own.factors(pass.gamma, channel, 1);
    const Pack<N> values = Pack<N>::load(src + place), diffs = Pack<N>::load(diff_dst + place);
#pragma unroll
    for (int i = 0; i < Pack<N>::kCount; ++i) {
      const float diff = diffs.of[i] * gamma.of[i];
      sum += diff;
      product += diff * ((values.of[i] - mean) * inverse);
    }
  });
  const float offset = own.mean_of(sum), slope = own.mean_of(product);
  own.for_packs([&](int channel, std::int64_t place) {
    const Pack<N> gamma = own.factors(pass.gamma, channel, 1);
    const Pack<N> values = Pack<N>::load(src + place);
    Pack<N> diffs = Pack<N>::load(diff_dst + place);
#pragma unroll
    for (int i = 0; i < Pack<N>::kCount; ++i) {
      const float normal = (values.of[i] - mean) * inverse;
      const float made = (diffs.of[i] * gamma.of[i] - offset - normal * slope) * inverse;
      diffs.of[i] = own.is_channel(channel + i) ? made : 0;
    }
    if (add) diffs += Pack<N>::load(diff_src + place);
    diffs.store(diff_src + place);
  });
}

template <class N>
__global__ void __launch_bounds__(kPackThreads, kBlocksEach)
    sum_position_slopes_kernel(ChannelSums sums, LayerNormPass pass,
                               const typename N::Stored* __restrict__ src,
                               const typename N::Stored* __restrict__ diff_dst) {
  const auto t = ThreadsPart::of_thread<N>(sums);
  Slopes<N> own = Slopes<N>::none();
#pragma unroll 4
  for (int position = t.first; position < t.end; position += t.step) {
    const float mean = pass.mean[position], inverse = pass.inverse[position];
    const Pack<N> values = Pack<N>::load(src + t.offset(position, sums));
    const Pack<N> diffs = Pack<N>::load(diff_dst + t.offset(position, sums));
#pragma unroll
    for (int i = 0; i < Pack<N>::kCount; ++i) {
      own.sum.of[i] += diffs.of[i];
      own.product.of[i] += diffs.of[i] * ((values.of[i] - mean) * inverse);
    }
  }
  write_part<N>(own, t.channel, sums);
}

}  // namespace

void normalize_positions(Stream stream, Numbers numbers, const LayerNormPass& pass, const void* src,
                         void* dst) {
  with_numbers(numbers, [&]<class N>(N) {
    launch_positions<N>(stream, "normalize_positions", normalize_positions_kernel<N>, pass, src,
                        dst);
  });
}

void normalize_positions_backward(Stream stream, Numbers numbers, const LayerNormPass& pass,
                                  const void* src, const void* diff_dst, void* diff_src, bool add) {
  with_numbers(numbers, [&]<class N>(N) {
    launch_positions<N>(stream, "normalize_positions_backward",
                        normalize_positions_backward_kernel<N>, pass, src, diff_dst, diff_src, add);
  });
}

void sum_position_slopes(Stream stream, Numbers numbers, const ChannelSums& sums,
                         const LayerNormPass& pass, const void* src, const void* diff_dst) {
  with_numbers(numbers, [&]<class N>(N) {
    const SumLaunch l = SumLaunch::over<N>(sums.channels);
    launch(stream, "sum_position_slopes", sum_position_slopes_kernel<N>, l.grid(sums), l.block(), 0,
           sums, pass, src, diff_dst);
  });
}

}  // namespace cputrain::cuda
