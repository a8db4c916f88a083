#include "backends/cuda/kernels/pools.h"

#include <cmath>
#include <type_traits>

#include "backends/cuda/kernels/packs.h"
#include "backends/cuda/kernels/sliding_windows.h"

namespace cputrain::cuda {
namespace {

/// Rows or columns begin .. end - 1 of src that window `window` covers.
struct Extent {
  int begin, end;
};
CPUTRAIN_DEVICE Extent extent_of(int window, int stride, int before, int size, int length) {
  const int first = window * stride - before, end = first + size;
  return {first < 0 ? 0 : first, end < length ? end : length};
}

/// Positions of src that window (row, column) covers.
CPUTRAIN_DEVICE int covered(const WindowShape& shape, int row, int column) {
  const Extent rows = extent_of(row, shape.stride, shape.top, shape.size, shape.src.height);
  const Extent columns = extent_of(column, shape.stride, shape.left, shape.size, shape.src.width);
  return (rows.end - rows.begin) * (columns.end - columns.begin);
}

/// The largest number so far and its place. After -infinity the next number is taken whatever it
/// is; NaN is taken wherever it is, and stays.
struct Largest {
  float value;
  int place;
  CPUTRAIN_DEVICE void meet(float other, int other_place) {
    const bool wins = other > value || other != other || value == -INFINITY;
    value = wins ? other : value;
    place = wins ? other_place : place;
  }
};

/// Winners of a pack's numbers, a byte each.
template <int kCount>
struct alignas(kCount) Winners {
  std::uint8_t of[kCount];
};

template <class N, int kSize>
__global__ void __launch_bounds__(kPackThreads)
    max_pool_forward_kernel(WindowShape shape, PositionNumbers windows,
                            const typename N::Stored* __restrict__ src,
                            typename N::Stored* __restrict__ dst,
                            std::uint8_t* __restrict__ winners, bool relu) {
  constexpr int kCount = Pack<N>::kCount;
  const auto place = PackPlace::of_thread<N>();
  if (!place.inside(shape.windows(), shape.dst.channels)) return;
  Largest largest[kCount];
#pragma unroll
  for (Largest& number : largest) number = {-INFINITY, 0};
  for_taps<kSize>(
      shape, windows.position(place.position),
      [&](int tap, std::int64_t offset) {
        const Pack<N> values = Pack<N>::load(src + offset + place.channel);
#pragma unroll
        for (int i = 0; i < kCount; ++i) largest[i].meet(values.of[i], tap);
      },
      [&](int tap) {
        if (!shape.sees_zeros) return;
#pragma unroll
        for (Largest& number : largest) number.meet(0, tap);
      });
  Pack<N> values;
  Winners<kCount> won;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float value = largest[i].value;
    const bool cut = relu && !(value > 0);
    values.of[i] = relu && value < 0 ? 0 : value;
    won.of[i] = cut ? kNoWinner : static_cast<std::uint8_t>(largest[i].place);
  }
  const std::int64_t offset = place.offset(shape.dst.channels);
  values.store(dst + offset);
  *reinterpret_cast<Winners<kCount>*>(winners + offset) = won;
}

template <class N>
__global__ void __launch_bounds__(kPackThreads)
    max_pool_backward_kernel(WindowShape shape, PositionNumbers positions,
                             const typename N::Stored* __restrict__ diff_dst,
                             const std::uint8_t* __restrict__ winners,
                             typename N::Stored* __restrict__ diff_src, bool add) {
  gather<N>(shape, positions, diff_src, add, [&](Pack<N>& sum, const auto& window, int channel) {
    const std::int64_t offset = window.offset + channel;
    const auto won = *reinterpret_cast<const Winners<Pack<N>::kCount>*>(winners + offset);
    const Pack<N> diff = Pack<N>::load(diff_dst + offset);
#pragma unroll
    for (int i = 0; i < Pack<N>::kCount; ++i) {
      if (won.of[i] == window.tap) sum.of[i] += diff.of[i];
    }
  });
}

/// The same where windows do not overlap, of which each has a thread. That also writes what lies
/// between its window and the next ones, or the map's end.
template <class N, int kSize>
__global__ void __launch_bounds__(kPackThreads)
    max_pool_backward_windows_kernel(WindowShape shape, PositionNumbers windows,
                                     const typename N::Stored* __restrict__ diff_dst,
                                     const std::uint8_t* __restrict__ winners,
                                     typename N::Stored* __restrict__ diff_src, bool add) {
  constexpr int kCount = Pack<N>::kCount;
  const auto place = PackPlace::of_thread<N>();
  if (!place.inside(shape.windows(), shape.dst.channels)) return;
  const Position at = windows.position(place.position);
  const auto extent = [&](int window, int all, int before, int length) {
    const Extent to_next = extent_of(window, shape.stride, before, shape.stride, length);
    return Extent{to_next.begin, window + 1 < all ? to_next.end : length};
  };
  const Extent rows = extent(at.row, shape.dst.height, shape.top, shape.src.height);
  const Extent columns = extent(at.column, shape.dst.width, shape.left, shape.src.width);
  if (rows.begin >= rows.end || columns.begin >= columns.end) return;  // it sees zeros alone
  const std::int64_t offset = place.offset(shape.dst.channels);
  const auto won = *reinterpret_cast<const Winners<kCount>*>(winners + offset);
  const Pack<N> diff = Pack<N>::load(diff_dst + offset);
  const auto write = [&](int tap, std::int64_t position) {
    typename N::Stored* const target = diff_src + position + place.channel;
    Pack<N> sum = begin_sum<N>(target, add);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (won.of[i] == tap) sum.of[i] += diff.of[i];
    }
    sum.store(target);
  };
  for_taps<kSize>(shape, at, write, [](int) {});
  const int below = at.row * shape.stride - shape.top + shape.size;
  const int right = at.column * shape.stride - shape.left + shape.size;
  if (rows.end <= below && columns.end <= right) return;
  constexpr int kNoTap = -1;
#pragma unroll 1
  for (int row = rows.begin; row < rows.end; ++row) {
#pragma unroll 1
    for (int column = columns.begin; column < columns.end; ++column) {
      if (row < below && column < right) continue;
      write(kNoTap, offset_of(at.image, row, column, shape.src));
    }
  }
}

template <class N, int kSize>
__global__ void __launch_bounds__(kPackThreads)
    average_pool_forward_kernel(WindowShape shape, PositionNumbers windows,
                                const typename N::Stored* __restrict__ src,
                                typename N::Stored* __restrict__ dst) {
  const auto place = PackPlace::of_thread<N>();
  if (!place.inside(shape.windows(), shape.dst.channels)) return;
  Pack<N> sum = Pack<N>::all(0);
  const Position window = windows.position(place.position);
  for_taps<kSize>(
      shape, window,
      [&](int, std::int64_t offset) { sum += Pack<N>::load(src + offset + place.channel); },
      [](int) {});
  sum /= covered(shape, window.row, window.column);
  sum.store(dst + place.offset(shape.dst.channels));
}

template <class N>
__global__ void __launch_bounds__(kPackThreads)
    average_pool_backward_kernel(WindowShape shape, PositionNumbers positions,
                                 const typename N::Stored* __restrict__ diff_dst,
                                 typename N::Stored* __restrict__ diff_src, bool add) {
  gather<N>(shape, positions, diff_src, add, [&](Pack<N>& sum, const auto& window, int channel) {
    Pack<N> diff = Pack<N>::load(diff_dst + window.offset + channel);
    diff /= covered(shape, window.row, window.column);
    sum += diff;
  });
}

/// A block has one image and kAcross packs of channels.
template <class N>
__global__ void __launch_bounds__(kAcross* kDown)
    global_average_pool_forward_kernel(MapShape shape, const typename N::Stored* __restrict__ map,
                                       typename N::Stored* __restrict__ dst) {
  const auto [x, y] = ThreadNumber::of_thread();
  const auto block = BlockNumber::of_thread();
  const int channel = (block.y * kAcross + x) * Pack<N>::kCount;
  const int positions = shape.height * shape.width;
  Pack<N> sum = Pack<N>::all(0);
  if (channel < shape.channels) {
    const typename N::Stored* src = map + block.x * shape.size() + channel;
    for (int p = y; p < positions; p += kDown) {
      sum += Pack<N>::load(src + offset_of_row(p, shape.channels));
    }
  }
  sum = sum_down(sum);
  if (y > 0 || channel >= shape.channels) return;
  sum /= positions;
  sum.store(dst + offset_of_row(block.x, shape.channels) + channel);
}

template <class N>
__global__ void __launch_bounds__(kPackThreads)
    global_average_pool_backward_kernel(int images, MapShape shape, Divisor positions,
                                        const typename N::Stored* __restrict__ diff_dst,
                                        typename N::Stored* __restrict__ diff_src, bool add) {
  const auto place = PackPlace::of_thread<N>();
  if (!place.inside(images * positions.number(), shape.channels)) return;
  const PackPlace mean{positions.quotient(place.position), place.channel};
  Pack<N> diff = Pack<N>::load(diff_dst + mean.offset(shape.channels));
  diff /= positions.number();
  typename N::Stored* const target = diff_src + place.offset(shape.channels);
  Pack<N> sum = begin_sum<N>(target, add);
  sum += diff;
  sum.store(target);
}

/// Calls f with the window's size where kernels are made for it, else with 0.
template <class F>
void with_size(int size, const F& f) {
  switch (size) {
    case 2:
      return f(std::integral_constant<int, 2>{});
    case 3:
      return f(std::integral_constant<int, 3>{});
    default:
      return f(std::integral_constant<int, 0>{});
  }
}

}  // namespace

void max_pool_forward(Stream stream, Numbers numbers, const WindowShape& shape, const void* src,
                      void* dst, std::uint8_t* winners, bool relu) {
  with_stored(numbers, [&]<class N>(N) {
    with_size(shape.size, [&](auto size) {
      launch_packs<N>(stream, "max_pool_forward", max_pool_forward_kernel<N, size>, shape.windows(),
                      shape.dst.channels, shape, positions_of(shape.dst), src, dst, winners, relu);
    });
  });
}

void max_pool_backward(Stream stream, Numbers numbers, const WindowShape& shape,
                       const void* diff_dst, const std::uint8_t* winners, void* diff_src,
                       bool add) {
  with_numbers(numbers, [&]<class N>(N) {
    const auto launch_over = [&](auto kernel, int positions, const MapShape& map) {
      launch_packs<N>(stream, "max_pool_backward", kernel, positions, map.channels, shape,
                      positions_of(map), diff_dst, winners, diff_src, add);
    };
    if (shape.size > shape.stride) {
      launch_over(max_pool_backward_kernel<N>, shape.positions(), shape.src);
    } else if (shape.size == 2) {
      launch_over(max_pool_backward_windows_kernel<N, 2>, shape.windows(), shape.dst);
    } else {
      launch_over(max_pool_backward_windows_kernel<N, 0>, shape.windows(), shape.dst);
    }
  });
}

void average_pool_forward(Stream stream, Numbers numbers, const WindowShape& shape, const void* src,
                          void* dst) {
  with_numbers(numbers, [&]<class N>(N) {
    with_size(shape.size, [&](auto size) {
      launch_packs<N>(stream, "average_pool_forward", average_pool_forward_kernel<N, size>,
                      shape.windows(), shape.dst.channels, shape, positions_of(shape.dst), src,
                      dst);
    });
  });
}

void average_pool_backward(Stream stream, Numbers numbers, const WindowShape& shape,
                           const void* diff_dst, void* diff_src, bool add) {
  with_numbers(numbers, [&]<class N>(N) {
    launch_packs<N>(stream, "average_pool_backward", average_pool_backward_kernel<N>,
                    shape.positions(), shape.src.channels, shape, positions_of(shape.src), diff_dst,
                    diff_src, add);
  });
}

void global_average_pool_forward(Stream stream, Numbers numbers, int images, const MapShape& src,
                                 const void* map, void* dst) {
  if (images == 0) return;
  with_numbers(numbers, [&]<class N>(N) {
    launch(stream, "global_average_pool_forward", global_average_pool_forward_kernel<N>,
           grid_of(images, pieces(src.channels, kAcross * kNumbersOfChunk<N>)),
           dim3(kAcross, kDown), 0, src, map, dst);
  });
}

void global_average_pool_backward(Stream stream, Numbers numbers, int images, const MapShape& src,
                                  const void* diff_dst, void* diff_src, bool add) {
  const int positions = src.height * src.width;
  with_numbers(numbers, [&]<class N>(N) {
    launch_packs<N>(stream, "global_average_pool_backward", global_average_pool_backward_kernel<N>,
                    images * positions, src.channels, images, src, Divisor(positions), diff_dst,
                    diff_src, add);
  });
}

}  // namespace cputrain::cuda
