#pragma once

// Gradients of a kernel: sums over pixels. Included by kernels.inl.
#include "backends/cpu/amx/pixels.inl"
#include "core/casts.h"

namespace cputrain::cpu::amx {
namespace {

inline void store_turned(Word (&rows)[16], Bf16* to) {
  transpose(rows);
  for (int i = 0; i < 16; ++i, to += kRowFactors) store(to, rows[i]);
}

/// A row of gradients of outputs as tiles [block][step], each of 16 channels and 32 pixels; adds
/// them to the bias's sums with the first part.
template <int kPart>
void write_output_row(const GradientShape& s, const MapRows& from, int y, Bf16* to,
                      float* bias_sums) {
  const Row<kPart> row(from, y);
  for (int block = 0; block < 2 * pairs_of(s.outs); ++block) {
    Float bias = load(bias_sums + block * kBlock);
    for (int step = 0; step < s.steps(); ++step, to += kFactors) {
      Word rows[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        const int pixel = step * 32 + 2 * i;
        Float low{}, high{};
        if (pixel < s.width) row.value(block, pixel, low);
        if (pixel + 1 < s.width) row.value(block, pixel + 1, high);
        if (kPart == 0) bias += low + high;
        to_pairs(low, high, rows[i]);
      }
      store_turned(rows, to);
    }
    store(bias_sums + block * kBlock, bias);
  }
}

/// The same of a row of windows, which is two rows of outputs.
template <int kPart>
void write_window_row(const GradientShape& s, const MapRows& from, int y, Bf16* upper, Bf16* lower,
                      float* bias_sums) {
  const Row<kPart> row(from, y);
  std::size_t at = 0;
  for (int block = 0; block < 2 * pairs_of(s.outs); ++block) {
    Float bias = load(bias_sums + block * kBlock);
    for (int step = 0; step < s.steps(); ++step, at += kFactors) {
      Word above[16], below[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        const int window = step * 16 + i;
        Float all{}, places[4]{};
        if (window < from.width) row.window(block, window, all, places);
        if (kPart == 0) bias += all;
        to_pairs(places[0], places[1], above[i]);
        to_pairs(places[2], places[3], below[i]);
      }
      store_turned(above, upper + at);
      store_turned(below, lower + at);
    }
    store(bias_sums + block * kBlock, bias);
  }
}

/// A row of the source as pairs of pixels, [copy][block][pair][16 channels][2]. The first copy has
/// pixels 0 and 1, 2 and 3, ..., the second 1 and 2, 3 and 4, ...: every tap finds its pairs in one
/// of them, and rows of tiles begin cache lines. Kernels of one tap need no second copy.
template <int kPart>
void write_source_row(const GradientShape& s, const MapRows& from, int y, Bf16* to) {
  if (y < 0 || y >= from.height) {
    std::memset(to, 0, s.source_part() * sizeof(Bf16));
    return;
  }
  const Row<kPart> row(from, y);
  const int pairs = to_int(s.pairs());
  for (int block = 0; block < 2 * pairs_of(s.ins); ++block) {
    const auto pixel = [&](int x, Float& value) __attribute__((always_inline)) {
      value = Float{};
      if (x >= s.left && x - s.left < from.width) row.value(block, x - s.left, value);
    };
    Bf16* even = to + to_size(block) * s.pairs() * kRowFactors;
    Bf16* odd = even + s.source_copy();
    Float a;
    pixel(0, a);
    for (int i = 0; i < pairs; ++i, even += kRowFactors, odd += kRowFactors) {
      Float b, c;
      pixel(2 * i + 1, b);
      pixel(2 * i + 2, c);
      Word words;
      to_pairs(a, b, words);
      store(even, words);
      a = c;
      if (s.copies() == 1) continue;
      to_pairs(b, c, words);
      store(odd, words);
    }
  }
}

/// Steps of all products of parts, `apart` in the list: tiles have few products in narrow maps, and
/// each step is rounded to where sums are then, so small products go first for all steps.
inline void list_products(const GradientShape& s, const Bf16* a, const Bf16* b, std::size_t apart,
                          Step* step) {
  for (int i = first_product(s.parts); i < kMostProducts; ++i, step += apart) {
    const Bf16* const of_a = a + to_size(kPartProducts[i].a) * s.output_part();
    *step = {{of_a, of_a + to_size(s.steps()) * kFactors},
             b + to_size(kPartProducts[i].b) * s.source_part()};
  }
}

/// Sums of this call, which began at zero, to those of the calls before.
template <class Tiles>
[[gnu::always_inline]] inline void add_sums(Tiles& tiles, float* to) {
  alignas(64) float made[4 * kSums];
  store_sums(tiles, made);
  for (std::size_t i = 0; i < 4 * kSums; i += kBlock) store(to + i, load(to + i) + load(made + i));
}

/// Factors of one image, and the steps through them.
inline void write_factors(const GradientShape& s, const GradientRun& run, int image) {
  const int rows = run.last - run.first;
  Bf16* const outputs = run.factors + to_size(image) * s.factors();
  Bf16* const source = outputs + to_size(s.strip) * s.output_row();
  const MapRows gradients = run.gradients.behind(to_size(image) * s.dst_image);
  const MapRows map = run.source.behind(to_size(image) * s.src_image);
  const std::size_t steps = to_size(run.images * rows * s.steps());
  Step* step = run.steps + to_size(image * rows * s.steps());
  float* const bias_sums = run.sums + s.kernel_sums();
  for (int y = 0; y < rows; ++y) {
    Bf16* const row = outputs + to_size(y) * s.output_row();
    for_parts(s.parts, [&](auto part) {
      Bf16* const to = row + to_size(part.number) * s.output_part();
      if (!gradients.winners) {
        write_output_row<part.number>(s, gradients, run.first + y, to, bias_sums);
      } else if (y % 2 == 0) {
        write_window_row<part.number>(s, gradients, (run.first + y) / 2, to, to + s.output_row(),
                                      bias_sums);
      }
    });
    for (int x = 0; x < s.steps(); ++x, ++step) {
      list_products(s, row + to_size(x) * kFactors,
                    source + to_size(y) * s.source_row() + to_size(x) * kFactors, steps, step);
    }
  }
  for (int y = 0; y < rows + s.kernel - 1; ++y) {
    Bf16* const row = source + to_size(y) * s.source_row();
    if (map.images) {
      write_pairs_of_pixels(s, map, run.first + y, y > 0, run.lines, row);
      continue;
    }
    for_parts(s.parts, [&](auto part) {
      write_source_row<part.number>(s, map, run.first + y - s.above,
                                    row + to_size(part.number) * s.source_part());
    });
  }
}

template <class Tiles>
void add_gradients(const GradientShape& s, const GradientRun& run) {
  for (int image = 0; image < run.images; ++image) write_factors(s, run, image);
  const std::size_t steps = to_size(run.images * (run.last - run.first)) * s.steps_of_row();
  const std::size_t block_of_source = s.pairs() * kRowFactors;
  Tiles tiles;
  float* sums = run.sums;
  for (int out = 0; out < pairs_of(s.outs); ++out) {
    for (int in = 0; in < pairs_of(s.ins); ++in) {
      for (int tap = 0; tap < s.taps(); ++tap, sums += 4 * kSums) {
        const std::size_t column =
            tap % 3 == 1 ? s.source_copy() : to_size(tap % 3 / 2) * kRowFactors;
        const std::size_t a = to_size(2 * out * s.steps()) * kFactors;
        const std::size_t b =
            to_size(tap / 3) * s.source_row() + column + to_size(2 * in) * block_of_source;
        s.parts == 1 ? load_sums(tiles, sums) : zero_sums(tiles);
        add_products(
            tiles, steps, block_of_source,
            [&](std::size_t i) { return shifted(run.steps[i], a, b); }, [](std::size_t) {});
        s.parts == 1 ? store_sums(tiles, sums) : add_sums(tiles, sums);
      }
    }
  }
}

void finish_kernel(const GradientShape& s, const float* sums, int out, bool adds, float* kernel) {
  for (int in = 0; in < s.ins; ++in) {
    for (int tap = 0; tap < s.taps(); ++tap) {
      const int pairs = (out / 2 * pairs_of(s.ins) + in / 2) * s.taps() + tap;
      const float* from = sums + to_size(pairs * 4 + out % 2 * 2 + in % 2) * kSums;
      Word rows[16];
      for (int i = 0; i < kBlock; ++i) rows[i] = reinterpret_cast<Word>(load(from + i * kBlock));
      transpose(rows);
      float* const to = kernel + to_size(in * s.taps() + tap) * kBlock * kBlock;
      for (int i = 0; i < kBlock; ++i) {
        Float value = reinterpret_cast<Float>(rows[i]);
        if (adds) value += load(to + i * kBlock);
        store(to + i * kBlock, value);
      }
    }
  }
}

}  // namespace
}  // namespace cputrain::cpu::amx
