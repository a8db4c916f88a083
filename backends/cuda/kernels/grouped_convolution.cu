#include "backends/cuda/kernels/grouped_convolution.h"

#include <algorithm>

#include "backends/cuda/kernels/packs.h"
#include "backends/cuda/kernels/sliding_windows.h"

namespace cputrain::cuda {
namespace {

/// Resident on a multiprocessor at least. Where none is named, the compiler aims for more of them
/// and spills.
inline constexpr int kBlocksEach = 4;

/// A shape as kernels take it.
struct Grouped {
  WindowShape window;
  int channels, filters;
  Divisor channels_of_group, filters_of_group, size;

  explicit Grouped(const GroupedShape& s)
      : window(s.window),
        channels(s.channels),
        filters(s.filters),
        channels_of_group(s.channels_of_group()),
        filters_of_group(s.filters_of_group()),
        size(s.window.size) {}

  /// Where the weights of a row begin.
  CPUTRAIN_DEVICE std::int64_t row(int tap, int channel) const {
    return offset_of_row(tap * channels_of_group.number() + channel, window.dst.channels);
  }
  /// The first channel that a filter reads.
  CPUTRAIN_DEVICE int first_channel(int filter) const {
    return filters_of_group.quotient(filter) * channels_of_group.number();
  }
};

/// For each filter of a pack channel `channel` of its group, at a position that begins there.
template <class N, bool kDepthwise>
CPUTRAIN_DEVICE Pack<N> read_channels(const Grouped& g, const typename N::Stored* position,
                                      int filter, int channel) {
  if constexpr (kDepthwise) {
    return Pack<N>::load(position + filter);
  } else {
    Pack<N> values;
#pragma unroll
    for (int i = 0; i < Pack<N>::kCount; ++i) {
      const bool there = filter + i < g.filters;
      const int from = there ? g.first_channel(filter + i) + channel : 0;
      values.of[i] = there ? number_of(position[from]) : 0;
    }
    return values;
  }
}

template <class N>
CPUTRAIN_DEVICE void add_products(Pack<N>& sum, const Pack<N>& a, const Pack<N>& b) {
#pragma unroll
  for (int i = 0; i < Pack<N>::kCount; ++i) sum.of[i] += a.of[i] * b.of[i];
}

template <class N, bool kDepthwise>
__global__ void __launch_bounds__(kPackThreads, kBlocksEach)
    grouped_forward_kernel(Grouped g, PositionNumbers windows,
                           const typename N::Stored* __restrict__ src,
                           const typename N::Stored* __restrict__ weights,
                           const float* __restrict__ bias, typename N::Stored* __restrict__ dst) {
  const auto place = PackPlace::of_thread<N>();
  if (!place.inside(g.window.windows(), g.window.dst.channels)) return;
  Pack<N> sum = bias ? Pack<N>::of_floats(bias + place.channel) : Pack<N>::all(0);
  for_taps<0>(
      g.window, windows.position(place.position),
      [&](int tap, std::int64_t offset) {
        for (int c = 0; c < g.channels_of_group.number(); ++c) {
          const Pack<N> of_row = Pack<N>::load(weights + g.row(tap, c) + place.channel);
          add_products(sum, read_channels<N, kDepthwise>(g, src + offset, place.channel, c),
                       of_row);
        }
      },
      [](int) {});
  sum.store(dst + place.offset(g.window.dst.channels));
}

/// What window `offset` adds to the gradient of channel `channel` by the weights of a tap.
template <class N>
CPUTRAIN_DEVICE float channel_gradient(const Grouped& g, const typename N::Stored* diff_dst,
                                       const typename N::Stored* weights, int tap, int channel) {
  const int group = g.channels_of_group.quotient(channel);
  const typename N::Stored* row =
      weights + g.row(tap, channel - group * g.channels_of_group.number());
  const int first = group * g.filters_of_group.number();
  float sum = 0;
  for (int o = first; o < first + g.filters_of_group.number(); ++o) {
    sum += number_of(diff_dst[o]) * number_of(row[o]);
  }
  return sum;
}

template <class N, bool kDepthwise>
__global__ void __launch_bounds__(kPackThreads, kBlocksEach)
    grouped_backward_data_kernel(Grouped g, PositionNumbers positions,
                                 const typename N::Stored* __restrict__ diff_dst,
                                 const typename N::Stored* __restrict__ weights,
                                 typename N::Stored* __restrict__ diff_src, bool add) {
  const auto add_to = [&](Pack<N>& sum, const CoveringWindow& window, int channel) {
    const typename N::Stored* diff = diff_dst + window.offset;
    if constexpr (kDepthwise) {
      add_products(sum, Pack<N>::load(diff + channel),
                   Pack<N>::load(weights + g.row(window.tap, 0) + channel));
    } else {
#pragma unroll
      for (int i = 0; i < Pack<N>::kCount; ++i) {
        if (channel + i >= g.channels) continue;  // padding stays zero
        sum.of[i] += channel_gradient<N>(g, diff, weights, window.tap, channel + i);
      }
    }
  };
  gather<N>(g.window, positions, diff_src, add, add_to);
}

/// What a row of weights is multiplied with in one window: nothing where its tap lies outside.
template <class N, bool kDepthwise>
CPUTRAIN_DEVICE Pack<N> read_tap(const Grouped& g, const typename N::Stored* src,
                                 const Position& window, int row, int filter) {
  const int tap = g.channels_of_group.quotient(row);
  const int channel = row - tap * g.channels_of_group.number();
  const int i = g.size.quotient(tap), j = tap - i * g.size.number();
  const int y = window.row * g.window.stride - g.window.top + i;
  const int x = window.column * g.window.stride - g.window.left + j;
  if (y < 0 || y >= g.window.src.height || x < 0 || x >= g.window.src.width) {
    return Pack<N>::all(0);
  }
  const std::int64_t offset = offset_of(window.image, y, x, g.window.src);
  return read_channels<N, kDepthwise>(g, src + offset, filter, channel);
}

/// A block sums a row of weights over a slice of the windows. The row behind the last is the bias'.
template <class N, bool kDepthwise>
__global__ void __launch_bounds__(kAcross* kDown, kBlocksEach)
    grouped_backward_weights_kernel(Grouped g, PositionNumbers windows, int rows, int slices,
                                    const typename N::Stored* __restrict__ src,
                                    const typename N::Stored* __restrict__ diff_dst,
                                    float* __restrict__ sums) {
  const auto [x, y] = ThreadNumber::of_thread();
  const auto block = BlockNumber::of_thread();
  const int filter = (block.y * kAcross + x) * Pack<N>::kCount;
  const int count = g.window.windows(), end = slice_begin(count, block.z + 1, slices);
  const bool inside = filter < g.window.dst.channels;
  Pack<N> sum = Pack<N>::all(0);
  for (int w = slice_begin(count, block.z, slices) + y; inside && w < end; w += kDown) {
    const Pack<N> diff = Pack<N>::load(diff_dst + offset_of_row(w, g.window.dst.channels) + filter);
    if (block.x == rows) {
      sum += diff;
    } else {
      add_products(sum, diff,
                   read_tap<N, kDepthwise>(g, src, windows.position(w), block.x, filter));
    }
  }
  sum = sum_down(sum);
  if (y > 0 || !inside) return;
  const std::int64_t row = static_cast<std::int64_t>(block.z) * (rows + 1) + block.x;
  float* const target = sums + offset_of_row(row, g.window.dst.channels) + filter;
#pragma unroll
  for (int i = 0; i < Pack<N>::kCount; ++i) target[i] = sum.of[i];
}

/// A thread for each number of a slice: `weights` of them, then the bias'.
__global__ void __launch_bounds__(kPackThreads)
    grouped_sums_kernel(int count, int weights, int slices, const float* __restrict__ sums,
                        float* __restrict__ diff_weights, float* __restrict__ diff_bias, bool add) {
  const int number = block_number() * kPackThreads + thread_number();
  if (number >= count) return;
  float* const target = number < weights ? diff_weights + number
                                         : (diff_bias ? diff_bias + number - weights : nullptr);
  if (!target) return;
  float sum = add ? *target : 0;
  for (int s = 0; s < slices; ++s) sum += sums[offset_of_row(s, count) + number];
  *target = sum;
}

template <class N>
int column_blocks(const GroupedShape& shape) {
  return pieces(shape.window.dst.channels, kAcross * kNumbersOfChunk<N>);
}

}  // namespace

void grouped_forward(Stream stream, Numbers numbers, const GroupedShape& shape, const void* src,
                     const void* weights, const float* bias, void* dst) {
  const WindowShape& window = shape.window;
  with_numbers(numbers, [&]<class N>(N) {
    with_bool(shape.depthwise(), [&](auto depthwise) {
      launch_packs<N>(stream, "grouped_forward", grouped_forward_kernel<N, depthwise>,
                      window.windows(), window.dst.channels, Grouped(shape),
                      positions_of(window.dst), src, weights, bias, dst);
    });
  });
}

void grouped_backward_data(Stream stream, Numbers numbers, const GroupedShape& shape,
                           const void* diff_dst, const void* weights, void* diff_src, bool add) {
  const WindowShape& window = shape.window;
  with_numbers(numbers, [&]<class N>(N) {
    with_bool(shape.depthwise(), [&](auto depthwise) {
      launch_packs<N>(stream, "grouped_backward_data", grouped_backward_data_kernel<N, depthwise>,
                      window.positions(), window.src.channels, Grouped(shape),
                      positions_of(window.src), diff_dst, weights, diff_src, add);
    });
  });
}

int grouped_slices(Numbers numbers, const GroupedShape& shape, int multiprocessors) {
  constexpr int kBlocksInAll = 8, kFewest = 8 * kDown;  // windows of a slice
  return with_numbers(numbers, [&]<class N>(N) {
    const int blocks = (shape.rows() + 1) * column_blocks<N>(shape);
    const int wanted = pieces(kBlocksInAll * multiprocessors, blocks);
    return std::max(1, std::min(wanted, shape.window.windows() / kFewest));
  });
}

std::int64_t grouped_sums(const GroupedShape& shape, int slices) {
  return offset_of_row((shape.rows() + 1) * static_cast<std::int64_t>(slices),
                       shape.window.dst.channels);
}

void grouped_backward_weights(Stream stream, Numbers numbers, const GroupedShape& shape, int slices,
                              const void* src, const void* diff_dst, float* sums,
                              float* diff_weights, float* diff_bias, bool add) {
  const WindowShape& window = shape.window;
  if (window.windows() == 0) return;
  const int rows = shape.rows(), columns = window.dst.channels;
  with_numbers(numbers, [&]<class N>(N) {
    with_bool(shape.depthwise(), [&](auto depthwise) {
      launch(stream, "grouped_backward_weights", grouped_backward_weights_kernel<N, depthwise>,
             grid_of(rows + 1, column_blocks<N>(shape), slices), dim3(kAcross, kDown), 0,
             Grouped(shape), positions_of(window.dst), rows, slices, src, diff_dst, sums);
    });
  });
  const int count = (rows + 1) * columns;
  launch_row(stream, "grouped_sums", grouped_sums_kernel, 1, count, rows * columns, slices, sums,
             diff_weights, diff_bias, add);
}

}  // namespace cputrain::cuda
