#include "backends/cuda/kernels/elementwise.h"

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/packs.h"
#include "core/random_words.h"

namespace cputrain::cuda {
namespace {

inline constexpr unsigned kThreads = 256;

CPUTRAIN_DEVICE std::size_t thread_of_launch() {
  return static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
}

unsigned blocks_for(std::size_t threads) {
  return static_cast<unsigned>(pieces(threads, kThreads));
}

/// The three bytes of a pixel of the images, numbered through all of them.
CPUTRAIN_DEVICE uchar4 moved_pixel(const ImageLoad& load, unsigned pixel) {
  const unsigned width = static_cast<unsigned>(load.width);
  const unsigned positions = static_cast<unsigned>(load.height) * width;
  const int y = static_cast<int>(pixel % positions / width);
  const int x = static_cast<int>(pixel % width);
  const compute::ImageMove move = load.facts->moves[pixel / positions];
  if (y < move.top || y >= move.bottom || x < move.left || x >= move.right) {
    return make_uchar4(0, 0, 0, 0);
  }
  const auto place = static_cast<unsigned>(move.first + y * move.down + x * move.across);
  const std::uint8_t* bytes =
      load.facts->bytes + (static_cast<std::size_t>(move.source) * positions + place) * 3;
  return make_uchar4(bytes[0], bytes[1], bytes[2], 0);
}

/// A thread for each pack of a pixel's channels: all but the first are padding.
template <class N>
__global__ void __launch_bounds__(kThreads)
    load_images_kernel(std::size_t packs, ImageLoad load, typename N::Stored* __restrict__ map) {
  constexpr int kCount = Pack<N>::kCount, kOfPixel = kChannelBlock / kCount;
  const std::size_t pack = thread_of_launch();
  if (pack >= packs) return;
  Pack<N> values = Pack<N>::all(0);
  if (pack % kOfPixel == 0) {
    const uchar4 colours = moved_pixel(load, static_cast<unsigned>(pack / kOfPixel));
    values.of[0] = static_cast<float>(colours.x) * load.scale + load.offset;
    values.of[1] = static_cast<float>(colours.y) * load.scale + load.offset;
    values.of[2] = static_cast<float>(colours.z) * load.scale + load.offset;
  }
  values.store(map + pack * kCount);
}

template <class N>
__global__ void __launch_bounds__(kThreads)
    round_numbers_kernel(std::size_t count, const float* __restrict__ src,
                         typename N::Stored* __restrict__ dst) {
  const std::size_t first = thread_of_launch() * Pack<N>::kCount;
  if (first < count) Pack<N>::of_floats(src + first).store(dst + first);
}

template <class N>
__global__ void __launch_bounds__(kThreads)
    relu_forward_kernel(std::size_t count, typename N::Stored* map) {
  const std::size_t first = thread_of_launch() * Pack<N>::kCount;
  if (first >= count) return;
  Pack<N> pack = Pack<N>::load(map + first);
#pragma unroll
  for (float& number : pack.of) number = number < 0 ? 0 : number;
  pack.store(map + first);
}

template <class N>
__global__ void __launch_bounds__(kThreads)
    relu_backward_kernel(std::size_t count, const typename N::Stored* __restrict__ map,
                         typename N::Stored* __restrict__ diff) {
  const std::size_t first = thread_of_launch() * Pack<N>::kCount;
  if (first >= count) return;
  const Pack<N> values = Pack<N>::load(map + first);
  Pack<N> diffs = Pack<N>::load(diff + first);
#pragma unroll
  for (int i = 0; i < Pack<N>::kCount; ++i) diffs.of[i] = values.of[i] > 0 ? diffs.of[i] : 0;
  diffs.store(diff + first);
}

template <class N>
__global__ void __launch_bounds__(kThreads)
    add_maps_kernel(std::size_t count, MapList maps, typename N::Stored* dst) {
  const std::size_t first = thread_of_launch() * Pack<N>::kCount;
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
                                     std::uint32_t sample, std::uint64_t element) {
  const std::uint32_t group = static_cast<std::uint32_t>(element / 4);
  const unsigned shift = static_cast<unsigned>(element % 4);
  RandomWords words = dropout_words(facts.seed, facts.step, layer, sample, group);
  if (shift == 0) return words;
  RandomWords next = dropout_words(facts.seed, facts.step, layer, sample, group + 1);
  if (shift & 1) {
    words = {words.y, words.z, words.w, next.x};
    next = {next.y, next.z, next.w, 0};
  }
  if (shift & 2) words = {words.z, words.w, next.x, next.y};
  return words;
}

template <class N>
__global__ void __launch_bounds__(kPackThreads)
    dropout_kernel(DropoutCall call, float scale, const PassFacts* __restrict__ facts,
                   typename N::Stored* __restrict__ map) {
  const auto place = PackPlace::of_thread<N>();
  // Padding is zero and stays so: packs of nothing else are left alone.
  if (!place.inside(call.images * call.positions, call.channels)) return;
  const unsigned positions = static_cast<unsigned>(call.positions);
  const std::uint32_t sample = facts->samples[place.position / positions];
  const std::uint64_t position = place.position % positions;
  const std::uint64_t element =
      position * static_cast<unsigned>(call.channels) + static_cast<unsigned>(place.channel);
  typename N::Stored* const target = map + place.offset(padded_channels(call.channels));
  Pack<N> pack = Pack<N>::load(target);
#pragma unroll
  for (int i = 0; i < Pack<N>::kCount; i += 4) {
    const RandomWords words =
        words_of(*facts, call.layer, sample, element + static_cast<unsigned>(i));
    pack.of[i] = dropout_keeps(words.x, call.rate) ? pack.of[i] * scale : 0;
    pack.of[i + 1] = dropout_keeps(words.y, call.rate) ? pack.of[i + 1] * scale : 0;
    pack.of[i + 2] = dropout_keeps(words.z, call.rate) ? pack.of[i + 2] * scale : 0;
    pack.of[i + 3] = dropout_keeps(words.w, call.rate) ? pack.of[i + 3] * scale : 0;
  }
  pack.store(target);
}

}  // namespace

void load_images(Stream stream, Numbers numbers, const ImageLoad& load, void* map) {
  with_numbers(numbers, [&]<class N>(N) {
    const std::size_t packs =
        static_cast<std::size_t>(load.images) * static_cast<std::size_t>(load.height) *
        static_cast<std::size_t>(load.width) * (padded_channels(3) / Pack<N>::kCount);
    if (packs == 0) return;
    launch(stream, "load_images", load_images_kernel<N>, dim3(blocks_for(packs)), dim3(kThreads), 0,
           packs, load, map);
  });
}

void round_numbers(Stream stream, Numbers numbers, std::size_t count, const float* src, void* dst) {
  if (count == 0) return;
  with_numbers(numbers, [&]<class N>(N) {
    launch(stream, "round_numbers", round_numbers_kernel<N>,
           dim3(blocks_for(count / Pack<N>::kCount)), dim3(kThreads), 0, count, src, dst);
  });
}

void relu_forward(Stream stream, Numbers numbers, std::size_t count, void* map) {
  if (count == 0) return;
  with_numbers(numbers, [&]<class N>(N) {
    launch(stream, "relu_forward", relu_forward_kernel<N>,
           dim3(blocks_for(count / Pack<N>::kCount)), dim3(kThreads), 0, count, map);
  });
}

void relu_backward(Stream stream, Numbers numbers, std::size_t count, const void* map, void* diff) {
  if (count == 0) return;
  with_numbers(numbers, [&]<class N>(N) {
    launch(stream, "relu_backward", relu_backward_kernel<N>,
           dim3(blocks_for(count / Pack<N>::kCount)), dim3(kThreads), 0, count, map, diff);
  });
}

void add_maps(Stream stream, Numbers numbers, std::size_t count, const MapList& maps, void* dst) {
  if (count == 0) return;
  with_numbers(numbers, [&]<class N>(N) {
    launch(stream, "add_maps", add_maps_kernel<N>, dim3(blocks_for(count / Pack<N>::kCount)),
           dim3(kThreads), 0, count, maps, dst);
  });
}

void dropout(Stream stream, Numbers numbers, const DropoutCall& call, const PassFacts* facts,
             void* map) {
  const int positions = call.images * call.positions;
  if (positions == 0) return;
  const float scale = call.rate < 1 ? 1 / (1 - call.rate) : 0;
  with_numbers(numbers, [&]<class N>(N) {
    const auto l = PackLaunch::over<N>(positions, padded_channels(call.channels));
    launch(stream, "dropout", dropout_kernel<N>, l.grid, l.block, 0, call, scale, facts, map);
  });
}

}  // namespace cputrain::cuda
