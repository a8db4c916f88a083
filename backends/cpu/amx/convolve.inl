#pragma once

// Forward, and back to the source: one pass over rows of a map. Included by kernels.inl.
#include "backends/cpu/amx/pixels.inl"
#include "core/casts.h"

namespace cputrain::cpu::amx {
namespace {

/// Row `y` of a map as factors [pair of blocks][pixel][32].
template <int kPart>
void write_map_row(const PassShape& s, const MapRows& from, int y, Bf16* to) {
  const Row<kPart> row(from, y);
  const int room = s.pixels() - s.left;
  const int count = from.width < room ? from.width : room;
  for (int pair = 0; pair < pairs_of(s.ins); ++pair) {
    Bf16* line = to + (to_size(pair) * to_size(s.pixels()) + to_size(s.left)) * kRowFactors;
    for (int x = 0; x < count; ++x, line += kRowFactors) {
      Float first, second;
      row.value(2 * pair, x, first);
      row.value(2 * pair + 1, x, second);
      store_factors(first, second, line);
    }
  }
}

/// Both rows of a row of windows, or one of them: where the other goes is null.
template <int kPart>
void write_window_rows(const PassShape& s, const MapRows& from, int y, Bf16* upper, Bf16* lower) {
  const Row<kPart> row(from, y);
  for (int pair = 0; pair < pairs_of(s.ins); ++pair) {
    std::size_t at = (to_size(pair) * to_size(s.pixels()) + to_size(s.left)) * kRowFactors;
    for (int x = 0; x < from.width; ++x, at += 2 * kRowFactors) {
      Float all, first[4], second[4];
      row.window(2 * pair, x, all, first);
      row.window(2 * pair + 1, x, all, second);
      if (upper) {
        store_factors(first[0], second[0], upper + at);
        store_factors(first[1], second[1], upper + at + kRowFactors);
      }
      if (lower) {
        store_factors(first[2], second[2], lower + at);
        store_factors(first[3], second[3], lower + at + kRowFactors);
      }
    }
  }
}

/// Rows y and y + 1 of what is convolved, y being even or odd with all calls of an image; zeros
/// outside of it. Pixels of the padding are left as they are.
template <int kPart>
void write_two_rows(const PassShape& s, const MapRows& from, int y, Bf16* to, Bf16* below) {
  const int rows = from.winners ? 2 * from.height : from.height;
  const auto outside = [&](int line) { return line < 0 || line >= rows; };
  for (int i = 0; i < 2; ++i) {
    if (outside(y + i)) std::memset(i == 0 ? to : below, 0, s.row_part() * sizeof(Bf16));
  }
  if (!from.winners) {
    if (!outside(y)) write_map_row<kPart>(s, from, y, to);
    if (!outside(y + 1)) write_map_row<kPart>(s, from, y + 1, below);
  } else if ((y & 1) == 0) {
    if (!outside(y)) write_window_rows<kPart>(s, from, y / 2, to, below);
  } else {
    if (!outside(y)) write_window_rows<kPart>(s, from, y / 2, nullptr, to);
    if (!outside(y + 1)) write_window_rows<kPart>(s, from, (y + 1) / 2, below, nullptr);
  }
}

/// The rows that pair `pair` of rows of outputs reads and the pair before it did not.
inline void write_rows(const PassShape& s, const PassRun& run, int pair) {
  const int end = 2 * pair + s.kernel + 1;
  for (int y = 2 * pair + (pair == run.first ? 0 : s.kernel - 1); y < end; y += 2) {
    Bf16* const row = run.rows + to_size(y % kRing) * s.row_size();
    Bf16* const below = row + s.row_size();
    if (run.from.images) {
      write_windows_of_pixels(run.from, y, pair > run.first, s.pixels(), run.lines, row, below);
      continue;
    }
    for_parts(s.parts, [&](auto part) {
      const std::size_t at = to_size(part.number) * s.row_part();
      write_two_rows<part.number>(s, run.from, y - s.above, row + at, below + at);
    });
  }
}

/// Steps of a pair of rows of outputs: inputs, then taps row by row.
inline void list_steps(const PassShape& s, const PassRun& run, int pair) {
  Step* step = run.steps;
  const Bf16* b = run.weights;
  const auto row = [&](int y) { return run.rows + to_size(y % kRing) * s.row_size(); };
  for (int in = 0; in < pairs_of(s.ins); ++in) {
    for (int tap = 0; tap < s.taps(); ++tap, b += 2 * kFactors) {
      const std::size_t at =
          (to_size(in) * to_size(s.pixels()) + to_size(tap % s.kernel)) * kRowFactors;
      const int y = 2 * pair + tap / s.kernel;
      for (int i = first_product(s.parts); i < kMostProducts; ++i, ++step) {
        const std::size_t a = at + to_size(kPartProducts[i].a) * s.row_part();
        *step = {{row(y) + a, row(y + 1) + a}, b + to_size(kPartProducts[i].b) * s.weights_part()};
      }
    }
  }
}

/// Sums of 2 rows of 16 pixels for a pair of blocks, which wait in memory to be finished:
/// [row][block][pixel][16 channels].
struct Waiting {
  const float* sums = nullptr;
  int pair = 0, out = 0, column = 0;
};

[[gnu::always_inline]] inline void finish_sum(const PassRun& run, int block, Float& value) {
  if (run.scale != 1) value *= run.scale;
  if (run.bias) value += load(run.bias + block * kBlock);
  if (run.relu) value = value < 0 ? Float{} : value;
}

[[gnu::always_inline]] inline void pool_window(const PassShape& s, const PassRun& run,
                                               const Waiting& w, int i, int half) {
  const int block = 2 * w.out + half, x = w.column * kTileRows / 2 + i, width = s.width / 2;
  if (x >= width || block >= s.outs) return;
  const float* from = w.sums + to_size(half) * kSums + to_size(2 * i) * kBlock;
  const float* below = from + 2 * kSums;
  const Float window[4] = {load(from), load(from + kBlock), load(below), load(below + kBlock)};
  Float best;
  Int winner;
  find_maximum<kBlock>(window, best, winner);
  finish_sum(run, block, best);
  const std::size_t at = to_size(block) * s.to_plane + to_size(w.pair * width + x) * kBlock;
  store(run.to + at, best);
  if (!run.winners) return;
  *reinterpret_cast<Lanes<kBlock>::AnyByte*>(run.winners + at) =
      __builtin_convertvector(winner, Lanes<kBlock>::Byte);
}

[[gnu::always_inline]] inline void store_pixels(const PassShape& s, const PassRun& run,
                                                const Waiting& w, int i, int half) {
  const int block = 2 * w.out + half;
  if (block >= s.outs) return;
  for (int pixel = 0; pixel < 4; ++pixel) {
    const int x = w.column * kTileRows + 2 * i + pixel % 2, y = 2 * w.pair + pixel / 2;
    if (x >= s.width || y >= s.height) continue;
    Float value =
        load(w.sums + to_size(pixel / 2 * 2 + half) * kSums + to_size(2 * i + pixel % 2) * kBlock);
    finish_sum(run, block, value);
    float* const to = run.to + to_size(block) * s.to_plane + to_size(y * s.width + x) * kBlock;
    if (run.adds) value += load(to);
    store(to, value);
  }
}

/// The outputs of two columns; eight calls are all of them.
constexpr int kFinishes = 8;
[[gnu::always_inline]] inline void finish(const PassShape& s, const PassRun& run, const Waiting& w,
                                          int i) {
  for (int half = 0; half < 2; ++half) {
    if (s.pools) {
      pool_window(s, run, w, i, half);
    } else {
      store_pixels(s, run, w, i, half);
    }
  }
}

template <class Tiles>
void convolve(const PassShape& s, const PassRun& run) {
  alignas(64) float sums[2][4 * kSums];
  Waiting waiting;
  Tiles tiles;
  std::memset(run.rows, 0, kRing * s.row_size() * sizeof(Bf16));
  for (int pair = run.first; pair < run.last; ++pair) {
    write_rows(s, run, pair);
    list_steps(s, run, pair);
    for (int out = 0; out < pairs_of(s.outs); ++out) {
      for (int column = 0; column < s.columns(); ++column) {
        zero_sums(tiles);
        const std::size_t a = to_size(column) * kTileRows * kRowFactors;
        const std::size_t b = to_size(out) * s.weights_of_pair();
        add_products(
            tiles, s.steps(), kFactors, [&](std::size_t i) { return shifted(run.steps[i], a, b); },
            [&](std::size_t i) {
              if (i < kFinishes && waiting.sums) finish(s, run, waiting, to_int(i));
            });
        for (std::size_t i = s.steps(); i < kFinishes && waiting.sums; ++i) {
          finish(s, run, waiting, to_int(i));
        }
        float* const to = waiting.sums == sums[0] ? sums[1] : sums[0];
        store_sums(tiles, to);
        waiting = {to, pair, out, column};
      }
    }
  }
  for (int i = 0; i < kFinishes && waiting.sums; ++i) finish(s, run, waiting, i);
}

/// One tap's numbers of a block of inputs and one of outputs, [16 ins][16 outs].
inline void read_tap(const PassShape& s, const float* kernel, bool turned, int in, int out, int tap,
                     Word (&rows)[16]) {
  const int block = turned ? in * s.outs + out : out * s.ins + in;
  const int place = turned ? s.taps() - 1 - tap : tap;
  const float* from = kernel + to_size(block * s.taps() + place) * kBlock * kBlock;
  for (int i = 0; i < kBlock; ++i) rows[i] = reinterpret_cast<Word>(load(from + i * kBlock));
  if (turned) transpose(rows);
}

/// [part][pair of ins][tap][2] tiles.
void pack_kernel(const PassShape& s, const float* kernel, bool turned, int out_pair, Bf16* to) {
  for (int in = 0; in < 2 * pairs_of(s.ins); ++in) {
    for (int i = 0; i < 2 * s.taps(); ++i) {
      const int tap = i / 2, half = i % 2, out = 2 * out_pair + half;
      Word rows[16] = {};
      if (in < s.ins && out < s.outs) read_tap(s, kernel, turned, in, out, tap, rows);
      Bf16* tile = to + to_size((in / 2 * s.taps() + tap) * 2 + half) * kFactors +
                   to_size(in % 2) * kFactors / 2;
      for (int k = 0; k < kBlock; k += 2, tile += kRowFactors) {
        for_parts(s.parts, [&](auto part) {
          Float low = reinterpret_cast<Float>(rows[k]), high = reinterpret_cast<Float>(rows[k + 1]);
          take_part<part.number>(low);
          take_part<part.number>(high);
          Word pairs;
          to_pairs(low, high, pairs);
          store(tile + to_size(part.number) * s.weights_part(), pairs);
        });
      }
    }
  }
}

}  // namespace
}  // namespace cputrain::cpu::amx
