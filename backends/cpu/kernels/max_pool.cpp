#include "backends/cpu/kernels/max_pool.h"

#include <algorithm>
#include <cassert>

#include "backends/cpu/kernels/clones.h"
#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"

namespace cputrain::cpu {
namespace {

/// The part of a window that lies inside the map, along one axis.
struct Inside {
  int origin;  ///< where the window begins in the map; may be negative
  int begin, end;
};

inline Inside inside(int output, int stride, int before, int size, int extent) {
  const int origin = output * stride - before;
  return {origin, std::max(0, -origin), std::min(size, extent - origin)};
}

/// A block's whole plane, its pixels `stride` numbers apart.
struct Plane {
  const float* data;
  std::ptrdiff_t stride;
};

/// One row of outputs of one block of channels. `kSize` is the window's size if it is known when
/// compiling (a window of 2 x 2 without padding), else 0.
template <int kBlock, int kSize>
[[gnu::always_inline]] inline void forward_row(const MaxPoolShape& p, int y, const Plane& src,
                                               float* dst, std::uint8_t* winners) {
  using L = Lanes<kBlock>;
  const int height = p.src.shape.height, width = p.src.shape.width;
  const int size = kSize ? kSize : p.size, stride = kSize ? kSize : p.stride;
  const Inside rows =
      kSize ? Inside{y * kSize, 0, kSize} : inside(y, stride, p.rows.before, size, height);
  for (int x = 0; x < p.dst.shape.width; ++x) {
    const Inside columns =
        kSize ? Inside{x * kSize, 0, kSize} : inside(x, stride, p.columns.before, size, width);
    const auto at = [&](int row, int column) -> const typename L::AnyFloat& {
      const std::ptrdiff_t pixel =
          static_cast<std::ptrdiff_t>(rows.origin + row) * width + columns.origin + column;
      return *reinterpret_cast<const typename L::AnyFloat*>(src.data + pixel * src.stride);
    };
    typename L::Float best = at(rows.begin, columns.begin);
    typename L::Int winner = typename L::Int{} + (rows.begin * size + columns.begin);
    for (int row = rows.begin; row < rows.end; ++row) {
      for (int column = columns.begin; column < columns.end; ++column) {
        const typename L::Float value = at(row, column);
        typename L::Int better;
        find_better<kBlock>(value, best, better);
        best = better ? value : best;
        winner = better ? typename L::Int{} + (row * size + column) : winner;
      }
    }
    if (p.relu) best = best < 0 ? typename L::Float{} : best;
    *reinterpret_cast<typename L::AnyFloat*>(dst + x * kBlock) = best;
    if (winners) {
      *reinterpret_cast<typename L::AnyByte*>(winners + x * kBlock) =
          __builtin_convertvector(winner, typename L::Byte);
    }
  }
}

/// The gradients of one row of outputs, added to (kAdd) or written over the windows' places.
template <int kBlock, int kSize, bool kAdd>
[[gnu::always_inline]] inline void backward_row(const MaxPoolShape& p, int y, const float* dst,
                                                const std::uint8_t* winners, const float* diff_dst,
                                                float* diff_src) {
  using L = Lanes<kBlock>;
  const int height = p.src.shape.height, width = p.src.shape.width;
  const int size = kSize ? kSize : p.size, stride = kSize ? kSize : p.stride;
  const Inside rows =
      kSize ? Inside{y * kSize, 0, kSize} : inside(y, stride, p.rows.before, size, height);
  for (int x = 0; x < p.dst.shape.width; ++x) {
    const Inside columns =
        kSize ? Inside{x * kSize, 0, kSize} : inside(x, stride, p.columns.before, size, width);
    typename L::Float diff = *reinterpret_cast<const typename L::AnyFloat*>(diff_dst + x * kBlock);
    if (p.relu) {
      const typename L::Float value =
          *reinterpret_cast<const typename L::AnyFloat*>(dst + x * kBlock);
      diff = value > 0 ? diff : typename L::Float{};
    }
    typename L::Int winner;
    load_bytes<kBlock>(winners + x * kBlock, winner);
    for (int row = rows.begin; row < rows.end; ++row) {
      for (int column = columns.begin; column < columns.end; ++column) {
        const std::ptrdiff_t pixel =
            static_cast<std::ptrdiff_t>(rows.origin + row) * width + columns.origin + column;
        auto& place = *reinterpret_cast<typename L::AnyFloat*>(diff_src + pixel * kBlock);
        const typename L::Int here = winner == row * size + column;
        const typename L::Float value = here ? diff : typename L::Float{};
        if constexpr (kAdd) {
          place += value;
        } else {
          place = value;
        }
      }
    }
  }
}

template <int kBlock>
[[gnu::always_inline]] inline void forward_row_of(const MaxPoolShape& p, int y, const Plane& src,
                                                  float* dst, std::uint8_t* winners) {
  if (p.halves() && src.stride == kBlock) {
    // The usual one, its stride known when compiling.
    forward_row<kBlock, 2>(p, y, {src.data, kBlock}, dst, winners);
  } else if (p.halves()) {
    forward_row<kBlock, 2>(p, y, src, dst, winners);
  } else {
    forward_row<kBlock, 0>(p, y, src, dst, winners);
  }
}

CPUTRAIN_CLONES
void forward_row_16(const MaxPoolShape& p, int y, const Plane& src, float* dst,
                    std::uint8_t* winners) {
  forward_row_of<16>(p, y, src, dst, winners);
}

CPUTRAIN_CLONES
void forward_row_8(const MaxPoolShape& p, int y, const Plane& src, float* dst,
                   std::uint8_t* winners) {
  forward_row_of<8>(p, y, src, dst, winners);
}

CPUTRAIN_CLONES
void backward_row_16(const MaxPoolShape& p, int y, const float* dst, const std::uint8_t* winners,
                     const float* diff_dst, float* diff_src) {
  p.halves() ? backward_row<16, 2, false>(p, y, dst, winners, diff_dst, diff_src)
             : backward_row<16, 0, true>(p, y, dst, winners, diff_dst, diff_src);
}

CPUTRAIN_CLONES
void backward_row_8(const MaxPoolShape& p, int y, const float* dst, const std::uint8_t* winners,
                    const float* diff_dst, float* diff_src) {
  p.halves() ? backward_row<8, 2, false>(p, y, dst, winners, diff_dst, diff_src)
             : backward_row<8, 0, true>(p, y, dst, winners, diff_dst, diff_src);
}

/// Numbers in one block's plane, and in one of its rows.
struct Strides {
  explicit Strides(const compute::SampleLayout& layout)
      : row(to_size(layout.shape.width) * to_size(layout.block)),
        plane(row * to_size(layout.shape.height)) {}
  std::size_t row, plane;
};

/// Zeros what no window of a 2 x 2 pool covers: the last row and column of odd extents.
void clear_rest(const MaxPoolShape& p, const Strides& strides, float* plane) {
  const auto height = to_size(p.src.shape.height);
  const auto covered_rows = to_size(2 * p.dst.shape.height);
  const std::size_t covered = to_size(2 * p.dst.shape.width * p.src.block);
  if (covered < strides.row) {
    for (std::size_t y = 0; y < covered_rows; ++y) {
      std::fill(plane + y * strides.row + covered, plane + (y + 1) * strides.row, 0.0f);
    }
  }
  std::fill(plane + covered_rows * strides.row, plane + height * strides.row, 0.0f);
}

}  // namespace

MaxPoolShape MaxPoolShape::of(const model::MaxPool& layer, const compute::SampleLayout& src,
                              const compute::SampleLayout& dst, bool relu) {
  const auto pad = [&](int extent) {
    return model::pad_amount(layer.padding, extent, layer.size, layer.stride);
  };
  return {src, dst, layer.size, layer.stride, pad(src.shape.height), pad(src.shape.width), relu};
}

void max_pool(const MaxPoolShape& p, int images, const float* src, MapForm form, float* dst,
              std::uint8_t* winners) {
  const Strides from(p.src), to(p.dst);
  assert(form == MapForm::blocked || !p.src.padded());
  const std::size_t blocks = p.src.blocks();
  const auto rows = to_size(p.dst.shape.height);
  const auto row_of = p.src.block == 16 ? forward_row_16 : forward_row_8;
  const auto row = [&](std::size_t plane, std::size_t y, const Plane& map) {
    const std::size_t offset = plane * to.plane + y * to.row;
    row_of(p, to_int(y), map, dst + offset, winners ? winners + offset : nullptr);
  };
  // In the order in which src lies.
  parallel_for(to_size(images) * blocks * rows, [&](std::size_t i) {
    if (form == MapForm::blocked) {
      return row(i / rows, i % rows, {src + i / rows * from.plane, p.src.block});
    }
    const std::size_t image = i / blocks / rows, block = i % blocks;
    const float* const first = src + image * p.src.size();
    row(image * blocks + block, i / blocks % rows,
        {first + block * to_size(p.src.block), p.src.shape.channels});
  });
}

void max_pool_backward(const MaxPoolShape& p, int images, const float* dst,
                       const std::uint8_t* winners, const float* diff_dst, float* diff_src) {
  const Strides from(p.src), to(p.dst);
  const auto rows = to_size(p.dst.shape.height);
  const auto row_of = p.src.block == 16 ? backward_row_16 : backward_row_8;
  // Windows may overlap, so one thread has a whole plane.
  parallel_for(to_size(images) * p.src.blocks(), [&](std::size_t plane) {
    float* const target = diff_src + plane * from.plane;
    if (p.halves()) {
      clear_rest(p, from, target);
    } else {
      std::fill_n(target, from.plane, 0.0f);
    }
    for (std::size_t y = 0; y < rows; ++y) {
      const std::size_t offset = plane * to.plane + y * to.row;
      row_of(p, to_int(y), dst + offset, winners + offset, diff_dst + offset, target);
    }
  });
}

}  // namespace cputrain::cpu
