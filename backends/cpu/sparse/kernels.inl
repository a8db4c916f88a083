// The loops of kernels.h, included by one file for each instruction set, which defines `Isa`:
//   kBlock                                channels in a block; a set of them is a number, lane 0
//                                         its lowest bit
//   load_bytes(from)                      one to each lane
//   not_zero(values), positive(values), equal(values, number)
//                                         the lanes of which that is true
//   add_where(set, sums, values)          sums, with the values of the set added
//   compress(set, values, offsets, to_values, to_offsets)
//                                         writes the lanes of the set, and perhaps some behind them
// Everything is in an unnamed namespace, so that no code for one instruction set is linked into
// another's; for the same reason nothing of the standard library is called.
#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/sparse/kernels.h"
#include "core/casts.h"

namespace cputrain::cpu::sparse {
namespace {

constexpr int kBlock = Isa::kBlock;
using Float = Lanes<kBlock>::Float;
using Int = Lanes<kBlock>::Int;
using Byte = Lanes<kBlock>::Byte;

inline Float load(const float* from) {
  return *reinterpret_cast<const Lanes<kBlock>::AnyFloat*>(from);
}
inline void store(float* to, Float values) {
  *reinterpret_cast<Lanes<kBlock>::AnyFloat*>(to) = values;
}

/// i * step, by lane.
inline Int multiples(int step) {
  Int lanes;
  for (int i = 0; i < kBlock; ++i) lanes[i] = i * step;
  return lanes;
}

// ---- lists ----

/// Numbers from one channel's weights to the next, and from one block's to the next.
constexpr int kChannel = kBlock, kChannels = 9 * kBlock * kBlock;

inline void append(unsigned keep, Float values, Int offsets, TileLists& lists) {
  Isa::compress(keep, values, offsets, lists.values + lists.size, lists.offsets + lists.size);
  lists.size += static_cast<std::uint32_t>(__builtin_popcount(keep));
}

/// For the rows below, which are read or written when this call has ended: they are walked block by
/// block of channels, in too many places at once for the processor to foresee. Into the
/// second-level cache, since the first is full of weights. `at` may lie behind the map.
template <class T>
inline void prefetch(const T* row, std::ptrdiff_t at) {
  const std::uintptr_t bytes = static_cast<std::uintptr_t>(at) * sizeof(T);
  const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(row) + bytes;
  __builtin_prefetch(reinterpret_cast<const void*>(place), 0, 2);
}

inline void prefetch_at(const float* row, std::ptrdiff_t at) { prefetch(row, at); }
inline void prefetch_at(const Gradients& row, std::ptrdiff_t at) {
  prefetch(row.diff, at);
  if (row.dst) prefetch(row.dst, at);
  if (row.winners) prefetch(row.winners, at);
}

/// Which gradients count, `at` numbers behind the first.
inline unsigned counting(const Gradients& from, Float diff, std::size_t at) {
  unsigned keep = Isa::not_zero(diff);
  if (from.dst) keep &= Isa::positive(load(from.dst + at));
  return keep;
}

inline unsigned counting(const float*, Float loaded, std::size_t) { return Isa::not_zero(loaded); }
inline const float* numbers(const float* values) { return values; }
inline const float* numbers(const Gradients& from) { return from.diff; }
inline bool outside(const float* values) { return values == nullptr; }
inline bool outside(const Gradients& from) { return from.diff == nullptr; }

/// `From` is a row of numbers or one of gradients.
template <class From>
inline void list_pixels(const From (&rows)[2], const RowShape& shape, TileLists& lists) {
  for (int tile = 0; tile < shape.tiles; ++tile) {
    for (int position = 0; position < 4; ++position) {
      lists.starts[4 * tile + position] = lists.size;
      const From& row = rows[position / 2];
      const int x = 2 * tile - shape.before + position % 2;
      if (outside(row) || x < 0 || x >= shape.width) continue;
      std::size_t at = to_size(x) * kBlock;
      Int offsets = multiples(kChannel);
      for (int i = 0; i < shape.blocks; ++i, at += shape.plane, offsets += kChannels) {
        const Float values = load(numbers(row) + at);
        prefetch_at(row, static_cast<std::ptrdiff_t>(at) + 2 * shape.width * kBlock);
        append(counting(row, values, at), values, offsets, lists);
      }
    }
  }
  lists.starts[4 * shape.tiles] = lists.size;
}

void list_map(const float* const (&rows)[2], const RowShape& shape, TileLists& lists) {
  list_pixels(rows, shape, lists);
}

void list_gradients(const Gradients (&rows)[2], const RowShape& shape, TileLists& lists) {
  list_pixels(rows, shape, lists);
}

void list_winners(const Gradients& from, const RowShape& shape, TileLists& lists) {
  for (int tile = 0; tile < shape.tiles; ++tile) {
    for (int position = 0; position < 4; ++position) {
      lists.starts[4 * tile + position] = lists.size;
      if (outside(from) || tile >= shape.width) continue;
      std::size_t at = to_size(tile) * kBlock;
      Int offsets = multiples(kChannel);
      for (int i = 0; i < shape.blocks; ++i, at += shape.plane, offsets += kChannels) {
        if (position == 0) {
          prefetch_at(from, static_cast<std::ptrdiff_t>(at) + shape.width * kBlock);
        }
        const Float diff = load(from.diff + at);
        const unsigned here = Isa::equal(Isa::load_bytes(from.winners + at), position);
        append(counting(from, diff, at) & here, diff, offsets, lists);
      }
    }
  }
  lists.starts[4 * shape.tiles] = lists.size;
}

// ---- scatter ----

/// Adds what the entries of one position of a tile contribute to the 4 x 4 sums around it: the
/// pixel at (row, column) of the tile meets tap (i, j) in sum (row + 2 - i, column + 2 - j).
template <int kRow, int kColumn>
inline void add_entries(const TileLists& lists, std::uint32_t begin, std::uint32_t end,
                        const float* weights, Float (&sums)[4][4]) {
  constexpr int kTap = kBlock * kBlock;
  Float own[9];
#pragma GCC unroll 9
  for (int i = 0; i < 9; ++i) own[i] = sums[kRow + 2 - i / 3][kColumn + 2 - i % 3];
  for (std::uint32_t k = begin; k < end; ++k) {
    const Float value = lists.values[k] - Float{};  // broadcast
    const float* const taps = weights + lists.offsets[k];
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) own[i] += value * load(taps + i * kTap);
  }
#pragma GCC unroll 9
  for (int i = 0; i < 9; ++i) sums[kRow + 2 - i / 3][kColumn + 2 - i % 3] = own[i];
}

/// Walks along a row of tiles with 4 x 4 sums in registers. Behind each tile its first two columns
/// are done: the upper two rows of them go to `finish`, the lower two wait for the next row.
template <class Finish>
inline void scatter(const ScatterRow& row, const Finish& finish) {
  const std::size_t width = to_size(2 * row.tiles + 2) * kBlock;
  const std::uint32_t* starts = row.lists.starts;
  float* upper = row.partial;
  Float sums[4][4] = {};
  sums[0][0] = load(upper), sums[0][1] = load(upper + kBlock);
  sums[1][0] = load(upper + width), sums[1][1] = load(upper + width + kBlock);
  for (int tile = 0; tile < row.tiles; ++tile, starts += 4, upper += 2 * kBlock) {
    float* const lower = upper + width;
    sums[0][2] = load(upper + 2 * kBlock), sums[0][3] = load(upper + 3 * kBlock);
    sums[1][2] = load(lower + 2 * kBlock), sums[1][3] = load(lower + 3 * kBlock);
    sums[2][2] = sums[2][3] = sums[3][2] = sums[3][3] = Float{};
    add_entries<0, 0>(row.lists, starts[0], starts[1], row.weights, sums);
    add_entries<0, 1>(row.lists, starts[1], starts[2], row.weights, sums);
    add_entries<1, 0>(row.lists, starts[2], starts[3], row.weights, sums);
    add_entries<1, 1>(row.lists, starts[3], starts[4], row.weights, sums);
    store(upper, sums[2][0]), store(upper + kBlock, sums[2][1]);
    store(lower, sums[3][0]), store(lower + kBlock, sums[3][1]);
    Float done[4] = {sums[0][0], sums[0][1], sums[1][0], sums[1][1]};
    if (row.carry) {
      const float* const carry = row.carry + to_size(tile) * 4 * kBlock;
      for (int i = 0; i < 4; ++i) done[i] += load(carry + i * kBlock);
    }
    finish(tile, done);
    for (int i = 0; i < 4; ++i) sums[i][0] = sums[i][2], sums[i][1] = sums[i][3];
  }
}

void scatter_and_carry(const ScatterRow& row, float* carry) {
  scatter(
      row, [&](int tile, const Float(&done)[4]) __attribute__((always_inline)) {
        float* const to = carry + to_size(tile) * 4 * kBlock;
        for (int i = 0; i < 4; ++i) store(to + i * kBlock, done[i]);
      });
}

/// As max_pool() does.
void scatter_and_pool(const ScatterRow& row, const PoolTarget& target) {
  const Float bias = target.bias ? load(target.bias) : Float{};
  scatter(
      row, [&](int tile, const Float(&done)[4]) __attribute__((always_inline)) {
        if (tile == 0) return;
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(tile - 1) * kBlock;
        Float best;
        Int winner;
        find_maximum<kBlock>(done, best, winner);
        best += bias;
        if (target.relu) best = best < 0 ? Float{} : best;
        store(target.dst + at, best);
        if (!target.winners) return;
        *reinterpret_cast<Lanes<kBlock>::AnyByte*>(target.winners + at) =
            __builtin_convertvector(winner, Byte);
      });
}

void scatter_and_store(const ScatterRow& row, const StoreTarget& target) {
  const Float bias = target.bias ? load(target.bias) : Float{};
  scatter(
      row, [&](int tile, const Float(&done)[4]) __attribute__((always_inline)) {
        for (int i = 0; i < 4; ++i) {
          const int x = 2 * tile - target.before + i % 2;
          if (!target.rows[i / 2] || x < 0 || x >= target.width) continue;
          float* const to = target.rows[i / 2] + static_cast<std::ptrdiff_t>(x) * kBlock;
          prefetch(to, 2 * target.width * kBlock);
          Float value = done[i] + bias;
          if (target.relu) value = value < 0 ? Float{} : value;
          store(to, target.adds ? load(to) + value : value);
        }
      });
}

// ---- gather ----

/// Entries go to the list of their channel one by one: the lanes of a window belong to different
/// lists, so none is compressed.
void list_windows(const Gradients& from, int count, std::uint32_t pixel, std::uint32_t step,
                  std::uint32_t row, ChannelLists& lists, float* bias_sum) {
  alignas(64) std::uint32_t offsets[kBlock];
  Float sums = load(bias_sum);
  for (int i = 0; i < count; ++i, pixel += step) {
    const std::size_t at = to_size(i) * kBlock;
    const float* const diff = from.diff + at;
    unsigned left = counting(from, load(diff), at);
    if (left == 0) continue;
    sums = Isa::add_where(left, sums, load(diff));
    Int pixels = Int{} + to_int(pixel);
    if (from.winners) {
      const Int winner = Isa::load_bytes(from.winners + at);
      pixels += (winner & 1) * kBlock + (winner >> 1) * to_int(row);
    }
    *reinterpret_cast<Int*>(offsets) = pixels;
    for (; left; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      const std::size_t to = to_size(lane) * lists.capacity + lists.sizes[lane]++;
      lists.values[to] = diff[lane];
      lists.offsets[to] = offsets[lane];
    }
  }
  store(bias_sum, sums);
}

/// The nine taps' sums of one output channel, each over a block of input channels, are local while
/// its entries pass: in registers, where there are enough. Sources share the list, so an entry is
/// loaded once for all of them.
template <int kSources>
inline void gather_channel(const float* values, const std::uint32_t* offsets, std::uint32_t size,
                           const float* const* src, std::size_t row, float* const* sums,
                           std::size_t first) {
  Float own[kSources][9];
  for (int s = 0; s < kSources; ++s) {
    for (int i = 0; i < 9; ++i) own[s][i] = load(sums[s] + first + i * kBlock);
  }
  for (std::uint32_t k = 0; k < size; ++k) {
    const Float value = values[k] - Float{};
#pragma GCC unroll 2
    for (int s = 0; s < kSources; ++s) {
      const float* const pixel = src[s] + offsets[k];
#pragma GCC unroll 9
      for (int i = 0; i < 9; ++i) {
        own[s][i] += value * load(pixel + to_size(i / 3) * row + i % 3 * kBlock);
      }
    }
  }
  for (int s = 0; s < kSources; ++s) {
    for (int i = 0; i < 9; ++i) store(sums[s] + first + i * kBlock, own[s][i]);
  }
}

void gather(const ChannelLists& lists, const float* const* src, int blocks, std::size_t row,
            float* const* sums) {
  for (std::size_t lane = 0; lane < kBlock; ++lane) {
    if (lists.sizes[lane] == 0) continue;
    const auto run = blocks == 2 ? gather_channel<2> : gather_channel<1>;
    const std::size_t first = lane * lists.capacity;
    run(lists.values + first, lists.offsets + first, lists.sizes[lane], src, row, sums,
        lane * 9 * kBlock);
  }
}

// ---- transpose ----

/// Exchanges blocks of 1, 2, 4, ... rows and columns, each a butterfly over pairs of rows.
void transpose(const float* src, std::size_t src_row, float* dst, std::size_t dst_row) {
  Float rows[kBlock];
  for (std::size_t i = 0; i < kBlock; ++i) rows[i] = load(src + i * src_row);
#pragma GCC unroll 4
  for (int step = 1; step < kBlock; step *= 2) {
    Int low, high;
    for (int i = 0; i < kBlock; ++i) {
      const bool swapped = (i & step) != 0;
      low[i] = swapped ? kBlock + i - step : i;
      high[i] = swapped ? kBlock + i : i + step;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kBlock; ++i) {
      if (i & step) continue;
      const Float a = rows[i], b = rows[i + step];
      rows[i] = __builtin_shuffle(a, b, low);
      rows[i + step] = __builtin_shuffle(a, b, high);
    }
  }
  for (std::size_t i = 0; i < kBlock; ++i) store(dst + i * dst_row, rows[i]);
}

constexpr Kernels kKernels{
    kBlock,           list_map,          list_gradients, list_winners, scatter_and_carry,
    scatter_and_pool, scatter_and_store, list_windows,   gather,       transpose};

}  // namespace
}  // namespace cputrain::cpu::sparse
