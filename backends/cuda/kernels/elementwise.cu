#include "backends/cuda/kernels/elementwise.h"

#include <cassert>
#include <cmath>
#include <string>
#include <type_traits>

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/image_pixels.h"
#include "backends/cuda/kernels/packs.h"
#include "core/random/random_words.h"

namespace cputrain::cuda {
namespace {

/// A thread for each pack of a position's channels, of a pixel or two.
template <class N>
__global__ void __launch_bounds__(kPackThreads)
    load_images_kernel(ImageLoad load, int positions, PositionNumbers numbers,
                       typename N::Stored* __restrict__ map) {
  const auto place = PackPlace::of_thread<N>();
  if (!place.inside(positions, kChannelBlock)) return;
  const Position at = numbers.position(place.position);
  Pack<N> values = Pack<N>::all(0);
#pragma unroll
  for (int i = 0; i < Pack<N>::kCount; i += kChannelsOfPixel) {
    const int pixel = (place.channel + i) / kChannelsOfPixel;
    const int column = at.column * load.pixels + pixel - load.left;
    if (pixel >= load.pixels || column < 0 || column >= load.width) continue;
    numbers_of(load, moved_pixel(load, load.facts->moves[at.image], at.row, column), values.of + i);
  }
  values.store(map + place.offset(kChannelBlock));
}

template <class N>
__global__ void __launch_bounds__(kPackThreads)
    round_numbers_kernel(std::int64_t count, const float* __restrict__ src,
                         typename N::Stored* __restrict__ dst) {
  const std::int64_t first = first_of_thread<kNumbersOfChunk<N>>(block_number());
  if (first < count) Pack<N>::of_floats(src + first).store(dst + first);
}

// Activations: what each makes of a number, and its gradient where `known` is what a rectifier
// made, or what SiLU read.

CPUTRAIN_DEVICE float bend(model::Relu, float number) { return number < 0 ? 0 : number; }
CPUTRAIN_DEVICE float bend_back(model::Relu, float known, float diff) {
  return known > 0 ? diff : 0;
}

CPUTRAIN_DEVICE float bend(model::Relu6, float number) {
  const float above = number < 0 ? 0 : number;
  return above > 6 ? 6 : above;
}
CPUTRAIN_DEVICE float bend_back(model::Relu6, float known, float diff) {
  return known > 0 && known < 6 ? diff : 0;
}

CPUTRAIN_DEVICE float bend(const model::LeakyRelu& l, float number) {
  return number > 0 ? number : l.slope * number;
}
CPUTRAIN_DEVICE float bend_back(const model::LeakyRelu& l, float known, float diff) {
  return known > 0 ? diff : l.slope * diff;
}

CPUTRAIN_DEVICE float sigmoid(float x) { return 1 / (1 + expf(-x)); }
CPUTRAIN_DEVICE float bend(model::Silu, float number) { return number * sigmoid(number); }
CPUTRAIN_DEVICE float bend_back(model::Silu, float known, float diff) {
  const float s = sigmoid(known);
  return diff * (s * (1 + known * (1 - s)));
}

/// src may be dst.
template <class N, class Layer>
__global__ void __launch_bounds__(kPackThreads)
    activation_kernel(std::int64_t count, Layer layer, const typename N::Stored* src,
                      typename N::Stored* dst) {
  const std::int64_t first = first_of_thread<kNumbersOfChunk<N>>(block_number());
  if (first >= count) return;
  Pack<N> pack = Pack<N>::load(src + first);
#pragma unroll
  for (float& number : pack.of) number = bend(layer, number);
  pack.store(dst + first);
}

/// diff_src may be diff_dst. Rectifiers add to nothing.
template <class N, class Layer>
__global__ void __launch_bounds__(kPackThreads)
    activation_backward_kernel(std::int64_t count, Layer layer,
                               const typename N::Stored* __restrict__ known,
                               const typename N::Stored* diff_dst, typename N::Stored* diff_src,
                               bool add) {
  const std::int64_t first = first_of_thread<kNumbersOfChunk<N>>(block_number());
  if (first >= count) return;
  const Pack<N> values = Pack<N>::load(known + first);
  Pack<N> diffs = Pack<N>::load(diff_dst + first);
#pragma unroll
  for (int i = 0; i < Pack<N>::kCount; ++i) {
    diffs.of[i] = bend_back(layer, values.of[i], diffs.of[i]);
  }
  if constexpr (std::is_same_v<Layer, model::Silu>) {
    if (add) diffs += Pack<N>::load(diff_src + first);
  }
  diffs.store(diff_src + first);
}

template <class N>
__global__ void __launch_bounds__(kPackThreads)
    add_maps_kernel(std::int64_t count, MapList maps, typename N::Stored* dst) {
  const std::int64_t first = first_of_thread<kNumbersOfChunk<N>>(block_number());
  if (first >= count) return;
  const auto load = [&](int i) {
    return Pack<N>::load(static_cast<const typename N::Stored*>(maps.of[i]) + first);
  };
  Pack<N> sum = load(0);
#pragma unroll
  for (int i = 1; i < kMostMaps; ++i) {
    if (i < maps.count) sum += load(i);
  }
  sum.store(dst + first);
}

/// The words of elements `element` .. `element` + 3 of a sample: those of one group, or of two.
CPUTRAIN_DEVICE RandomWords words_of(const PassFacts& facts, std::uint32_t layer,
                                     std::uint32_t sample, std::int64_t element) {
  const auto group = static_cast<std::uint32_t>(element / 4);
  RandomWords words = dropout_words(facts.seed, facts.step, layer, sample, group);
  if (element % 4 == 0) return words;
  RandomWords next = dropout_words(facts.seed, facts.step, layer, sample, group + 1);
  if (element & 1) {
    words = {words.y, words.z, words.w, next.x};
    next = {next.y, next.z, next.w, 0};
  }
  if (element & 2) words = {words.z, words.w, next.x, next.y};
  return words;
}

template <class N>
__global__ void __launch_bounds__(kPackThreads)
    dropout_kernel(DropoutCall call, Divisor positions, float scale,
                   const PassFacts* __restrict__ facts, typename N::Stored* __restrict__ map) {
  const auto place = PackPlace::of_thread<N>();
  // Padding is zero and stays so: packs of nothing else are left alone.
  if (!place.inside(call.images * call.positions, call.channels)) return;
  const int image = positions.quotient(place.position);
  const std::int64_t element =
      offset_of_row(place.position - image * call.positions, call.channels) + place.channel;
  typename N::Stored* const target = map + place.offset(padded_channels(call.channels));
  Pack<N> pack = Pack<N>::load(target);
#pragma unroll
  for (int i = 0; i < Pack<N>::kCount; i += 4) {
    const RandomWords words = words_of(*facts, call.layer, facts->samples[image], element + i);
    pack.of[i] = dropout_keeps(words.x, call.rate) ? pack.of[i] * scale : 0;
    pack.of[i + 1] = dropout_keeps(words.y, call.rate) ? pack.of[i + 1] * scale : 0;
    pack.of[i + 2] = dropout_keeps(words.z, call.rate) ? pack.of[i + 2] * scale : 0;
    pack.of[i + 3] = dropout_keeps(words.w, call.rate) ? pack.of[i + 3] * scale : 0;
  }
  pack.store(target);
}

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

/// Calls f with the type of numbers of an activation's kernel, and the activation.
template <class F>
void with_activation(Numbers numbers, const Pointwise& activation, const F& f) {
  std::visit(
      [&]<class Layer>(const Layer& layer) {
        const auto with_layer = [&](auto n) { f(n, layer); };
        if constexpr (std::is_same_v<Layer, model::Relu> || std::is_same_v<Layer, model::Relu6>) {
          with_stored(numbers, with_layer);
        } else {
          with_numbers(numbers, with_layer);
        }
      },
      activation);
}

}  // namespace

void load_images(Stream stream, Numbers numbers, const ImageLoad& load, void* map) {
  const int positions = load.images * load.height * load.columns();
  if (positions == 0) return;
  const PositionNumbers of_map{Divisor(load.height), Divisor(load.columns())};
  with_numbers(numbers, [&]<class N>(N) {
    launch_packs<N>(stream, "load_images", load_images_kernel<N>, positions, kChannelBlock, load,
                    positions, of_map, map);
  });
}

void round_numbers(Stream stream, Numbers numbers, std::int64_t count, const float* src,
                   void* dst) {
  assert(numbers != Numbers::exact);
  with_numbers(numbers, [&]<class N>(N) {
    if constexpr (N::kNumbers != Numbers::exact) {
      launch_row(stream, "round_numbers", round_numbers_kernel<N>, kNumbersOfChunk<N>, count, src,
                 dst);
    }
  });
}

void activate(Stream stream, Numbers numbers, const Pointwise& activation, std::int64_t count,
              const void* src, void* dst) {
  with_activation(numbers, activation, [&]<class N, class Layer>(N, const Layer& layer) {
    static const std::string name = std::string(Layer::kWord) + "_forward";
    launch_row(stream, name.c_str(), activation_kernel<N, Layer>, kNumbersOfChunk<N>, count, layer,
               src, dst);
  });
}

void activate_backward(Stream stream, Numbers numbers, const Pointwise& activation,
                       std::int64_t count, const void* known, const void* diff_dst, void* diff_src,
                       bool add) {
  with_activation(numbers, activation, [&]<class N, class Layer>(N, const Layer& layer) {
    static const std::string name = std::string(Layer::kWord) + "_backward";
    launch_row(stream, name.c_str(), activation_backward_kernel<N, Layer>, kNumbersOfChunk<N>,
               count, layer, known, diff_dst, diff_src, add);
  });
}

void add_maps(Stream stream, Numbers numbers, std::int64_t count, const MapList& maps, void* dst) {
  with_numbers(numbers, [&]<class N>(N) {
    launch_row(stream, "add_maps", add_maps_kernel<N>, kNumbersOfChunk<N>, count, maps, dst);
  });
}

void dropout(Stream stream, Numbers numbers, const DropoutCall& call, const PassFacts* facts,
             void* map) {
  const int positions = call.images * call.positions;
  const float scale = call.rate < 1 ? 1 / (1 - call.rate) : 0;
  with_numbers(numbers, [&]<class N>(N) {
    launch_packs<N>(stream, "dropout", dropout_kernel<N>, positions, padded_channels(call.channels),
                    call, Divisor(call.positions), scale, facts, map);
  });
}

void concat_forward(Stream stream, Numbers numbers, const ConcatPart& part, const void* src,
                    void* dst) {
  with_stored(numbers, [&]<class N>(N) {
    with_bool(part.first % kNumbersOfChunk<N> == 0, [&](auto whole) {
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
    with_bool(part.first % kNumbersOfChunk<N> == 0, [&](auto whole) {
      launch_packs<N>(stream, "concat_backward", concat_backward_kernel<N, whole>, part.positions,
                      padded_channels(part.channels), part, diff_whole, diff_part, add);
    });
  });
}

}  // namespace cputrain::cuda
