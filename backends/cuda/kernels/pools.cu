#include "backends/cuda/kernels/pools.h"

#include <cmath>

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/quads.h"

namespace cputrain::cuda {
namespace {

/// Where a position of a map, counted over all images, lies.
struct Place {
  int image, row, column;
};
CPUTRAIN_DEVICE Place place_of(unsigned position, const MapShape& map) {
  const unsigned width = static_cast<unsigned>(map.width);
  const unsigned height = static_cast<unsigned>(map.height);
  const unsigned row = position / width;
  return {static_cast<int>(row / height), static_cast<int>(row % height),
          static_cast<int>(position % width)};
}

CPUTRAIN_DEVICE std::size_t offset_of(int image, int row, int column, const MapShape& map) {
  const unsigned position = static_cast<unsigned>((image * map.height + row) * map.width + column);
  return static_cast<std::size_t>(position) * static_cast<std::size_t>(map.channels);
}

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

/// Windows first .. last along one side that cover the place.
struct Covering {
  int first, last;
};
CPUTRAIN_DEVICE Covering covering(int place, int before, int size, int stride, int windows) {
  const int at = place + before;
  const int last = at / stride;
  return {at < size ? 0 : (at - size) / stride + 1, last < windows ? last : windows - 1};
}

/// f(place in the window, offset in src) for what window (row, column) covers of src, in the order
/// of rows. kSize is the window's size, known to the compiler, or 0 for any.
template <int kSize, class F>
CPUTRAIN_DEVICE void for_taps(const WindowShape& shape, const Place& window, F f) {
  const int size = kSize > 0 ? kSize : shape.size;
  const int top = window.row * shape.stride - shape.top;
  const int left = window.column * shape.stride - shape.left;
#pragma unroll
  for (int i = 0; i < size; ++i) {
#pragma unroll
    for (int j = 0; j < size; ++j) {
      const int row = top + i, column = left + j;
      if (row >= 0 && row < shape.src.height && column >= 0 && column < shape.src.width) {
        f(i * size + j, offset_of(window.image, row, column, shape.src));
      }
    }
  }
}

/// f(window's row, its column, the place's number in the window) for the windows that cover the
/// place of src, in their order.
template <class F>
CPUTRAIN_DEVICE void for_windows(const WindowShape& shape, const Place& place, F f) {
  const Covering rows = covering(place.row, shape.top, shape.size, shape.stride, shape.dst.height);
  const Covering columns =
      covering(place.column, shape.left, shape.size, shape.stride, shape.dst.width);
#pragma unroll 1
  for (int row = rows.first; row <= rows.last; ++row) {
    const int i = place.row + shape.top - row * shape.stride;
#pragma unroll 1
    for (int column = columns.first; column <= columns.last; ++column) {
      const int j = place.column + shape.left - column * shape.stride;
      f(row, column, i * shape.size + j);
    }
  }
}

/// The largest number so far and its place; where numbers begin with -infinity the next one is
/// taken whatever it is, and what is no number stays once it was taken.
struct Largest {
  float value;
  unsigned place;
  CPUTRAIN_DEVICE void meet(float other, unsigned other_place) {
    const bool wins = other > value || value == -INFINITY;
    value = wins ? other : value;
    place = wins ? other_place : place;
  }
};

template <int kSize>
__global__ void __launch_bounds__(kQuadThreads)
    max_pool_forward_kernel(WindowShape shape, const float* __restrict__ src,
                            float* __restrict__ dst, std::uint8_t* __restrict__ winners) {
  const Quad quad = quad_of_thread();
  if (!quad.inside(shape.windows(), shape.dst.channels)) return;
  Largest x{-INFINITY, 0}, y{-INFINITY, 0}, z{-INFINITY, 0}, w{-INFINITY, 0};
  const Place window = place_of(quad.position, shape.dst);
  for_taps<kSize>(shape, window, [&](int tap, std::size_t offset) {
    const float4 values = load_quad(src + offset + quad.channel);
    const unsigned place = static_cast<unsigned>(tap);
    x.meet(values.x, place);
    y.meet(values.y, place);
    z.meet(values.z, place);
    w.meet(values.w, place);
  });
  const std::size_t offset = quad.offset(shape.dst.channels);
  store_quad(dst + offset, quad_of(x.value, y.value, z.value, w.value));
  *reinterpret_cast<unsigned*>(winners + offset) =
      x.place | y.place << 8 | z.place << 16 | w.place << 24;
}

__global__ void __launch_bounds__(kQuadThreads)
    max_pool_backward_kernel(WindowShape shape, const float* __restrict__ diff_dst,
                             const std::uint8_t* __restrict__ winners, float* __restrict__ diff_src,
                             bool add) {
  const Quad quad = quad_of_thread();
  if (!quad.inside(shape.positions(), shape.src.channels)) return;
  float* target = diff_src + quad.offset(shape.src.channels);
  float4 sum = add ? load_quad(target) : quad_of(0, 0, 0, 0);
  const Place place = place_of(quad.position, shape.src);
  for_windows(shape, place, [&](int row, int column, int number) {
    const std::size_t offset =
        offset_of(place.image, row, column, shape.dst) + static_cast<std::size_t>(quad.channel);
    const unsigned won = *reinterpret_cast<const unsigned*>(winners + offset);
    const float4 diff = load_quad(diff_dst + offset);
    const unsigned mine = static_cast<unsigned>(number);
    if ((won & 255) == mine) sum.x += diff.x;
    if ((won >> 8 & 255) == mine) sum.y += diff.y;
    if ((won >> 16 & 255) == mine) sum.z += diff.z;
    if (won >> 24 == mine) sum.w += diff.w;
  });
  store_quad(target, sum);
}

template <int kSize>
__global__ void __launch_bounds__(kQuadThreads)
    average_pool_forward_kernel(WindowShape shape, const float* __restrict__ src,
                                float* __restrict__ dst) {
  const Quad quad = quad_of_thread();
  if (!quad.inside(shape.windows(), shape.dst.channels)) return;
  float4 sum = quad_of(0, 0, 0, 0);
  const Place window = place_of(quad.position, shape.dst);
  for_taps<kSize>(shape, window, [&](int, std::size_t offset) {
    sum = sum_of(sum, load_quad(src + offset + quad.channel));
  });
  const float count = static_cast<float>(covered(shape, window.row, window.column));
  store_quad(dst + quad.offset(shape.dst.channels), quotient_of(sum, count));
}

__global__ void __launch_bounds__(kQuadThreads)
    average_pool_backward_kernel(WindowShape shape, const float* __restrict__ diff_dst,
                                 float* __restrict__ diff_src, bool add) {
  const Quad quad = quad_of_thread();
  if (!quad.inside(shape.positions(), shape.src.channels)) return;
  float* target = diff_src + quad.offset(shape.src.channels);
  float4 sum = add ? load_quad(target) : quad_of(0, 0, 0, 0);
  const Place place = place_of(quad.position, shape.src);
  for_windows(shape, place, [&](int row, int column, int) {
    const std::size_t offset = offset_of(place.image, row, column, shape.dst);
    const float count = static_cast<float>(covered(shape, row, column));
    sum = sum_of(sum, quotient_of(load_quad(diff_dst + offset + quad.channel), count));
  });
  store_quad(target, sum);
}

/// A block has one image and kAcross quads; kDown threads share the positions of a quad, and their
/// sums are added in halves.
inline constexpr int kAcross = 8, kDown = 32;
struct PositionSums {
  float4 of[kDown][kAcross];
};

__global__ void __launch_bounds__(kAcross* kDown)
    global_average_pool_forward_kernel(MapShape shape, const float* __restrict__ map,
                                       float* __restrict__ dst) {
  auto& sums = shared<PositionSums>();
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int channel = (static_cast<int>(blockIdx.y) * kAcross + x) * kQuad;
  const int positions = shape.height * shape.width;
  const std::size_t image = blockIdx.x, channels = static_cast<std::size_t>(shape.channels);
  float4 sum = quad_of(0, 0, 0, 0);
  if (channel < shape.channels) {
    const float* src = map + image * shape.size() + channel;
    for (int p = y; p < positions; p += kDown) {
      sum = sum_of(sum, load_quad(src + static_cast<std::size_t>(p) * channels));
    }
  }
  sums.of[y][x] = sum;
  for (int half = kDown / 2; half > 0; half /= 2) {
    __syncthreads();
    if (y < half) {
      sum = sum_of(sum, sums.of[y + half][x]);
      sums.of[y][x] = sum;
    }
  }
  if (y > 0 || channel >= shape.channels) return;
  store_quad(dst + image * channels + channel, quotient_of(sum, static_cast<float>(positions)));
}

__global__ void __launch_bounds__(kQuadThreads)
    global_average_pool_backward_kernel(int images, MapShape shape,
                                        const float* __restrict__ diff_dst,
                                        float* __restrict__ diff_src, bool add) {
  const Quad quad = quad_of_thread();
  const int positions = shape.height * shape.width;
  if (!quad.inside(images * positions, shape.channels)) return;
  const Quad mean{quad.position / static_cast<unsigned>(positions), quad.channel};
  const float4 diff =
      quotient_of(load_quad(diff_dst + mean.offset(shape.channels)), static_cast<float>(positions));
  float* target = diff_src + quad.offset(shape.channels);
  store_quad(target, add ? sum_of(load_quad(target), diff) : diff);
}

}  // namespace

void max_pool_forward(Stream stream, const WindowShape& shape, const float* src, float* dst,
                      std::uint8_t* winners) {
  if (shape.windows() == 0) return;
  const QuadLaunch l = quad_launch(shape.windows(), shape.dst.channels);
  const auto kernel = shape.size == 2   ? max_pool_forward_kernel<2>
                      : shape.size == 3 ? max_pool_forward_kernel<3>
                                        : max_pool_forward_kernel<0>;
  launch(stream, "max_pool_forward", kernel, l.grid, l.block, 0, shape, src, dst, winners);
}

void max_pool_backward(Stream stream, const WindowShape& shape, const float* diff_dst,
                       const std::uint8_t* winners, float* diff_src, bool add) {
  if (shape.positions() == 0) return;
  const QuadLaunch l = quad_launch(shape.positions(), shape.src.channels);
  launch(stream, "max_pool_backward", max_pool_backward_kernel, l.grid, l.block, 0, shape, diff_dst,
         winners, diff_src, add);
}

void average_pool_forward(Stream stream, const WindowShape& shape, const float* src, float* dst) {
  if (shape.windows() == 0) return;
  const QuadLaunch l = quad_launch(shape.windows(), shape.dst.channels);
  const auto kernel = shape.size == 2   ? average_pool_forward_kernel<2>
                      : shape.size == 3 ? average_pool_forward_kernel<3>
                                        : average_pool_forward_kernel<0>;
  launch(stream, "average_pool_forward", kernel, l.grid, l.block, 0, shape, src, dst);
}

void average_pool_backward(Stream stream, const WindowShape& shape, const float* diff_dst,
                           float* diff_src, bool add) {
  if (shape.positions() == 0) return;
  const QuadLaunch l = quad_launch(shape.positions(), shape.src.channels);
  launch(stream, "average_pool_backward", average_pool_backward_kernel, l.grid, l.block, 0, shape,
         diff_dst, diff_src, add);
}

void global_average_pool_forward(Stream stream, int images, const MapShape& src, const float* map,
                                 float* dst) {
  if (images == 0) return;
  const std::size_t tiles = pieces(static_cast<std::size_t>(src.channels / kQuad), kAcross);
  launch(stream, "global_average_pool_forward", global_average_pool_forward_kernel,
         dim3(static_cast<unsigned>(images), static_cast<unsigned>(tiles)), dim3(kAcross, kDown), 0,
         src, map, dst);
}

void global_average_pool_backward(Stream stream, int images, const MapShape& src,
                                  const float* diff_dst, float* diff_src, bool add) {
  if (images == 0) return;
  const QuadLaunch l = quad_launch(images * src.height * src.width, src.channels);
  launch(stream, "global_average_pool_backward", global_average_pool_backward_kernel, l.grid,
         l.block, 0, images, src, diff_dst, diff_src, add);
}

}  // namespace cputrain::cuda
