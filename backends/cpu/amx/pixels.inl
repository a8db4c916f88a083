#pragma once

// The first layer's source: bytes of images as factors. Included by convolve.inl and gradients.inl.
#include "backends/cpu/amx/vectors.inl"
#include "core/casts.h"

namespace cputrain::cpu::amx {
namespace {

constexpr int kColours = 3, kRun = 3 * kColours;  ///< a row of a window
using HalfAnywhere [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(2)]] = std::uint16_t;
using EightAnywhere [[gnu::vector_size(16), gnu::may_alias, gnu::aligned(2)]] = std::uint16_t;

[[gnu::always_inline]] inline void bytes_to_factors(const std::uint8_t* from, float shift,
                                                    Bf16* to) {
  Int bytes;
  load_bytes<kBlock>(from, bytes);
  Word factors;
  round_up_there(__builtin_convertvector(bytes, Float) + shift, factors);
  *reinterpret_cast<HalfAnywhere*>(to) = __builtin_convertvector(factors >> 16, Half);
}

/// Row `y` of an image with its padding, kColours to a pixel, as `pixels` windows see it.
inline void write_line(const Pixels& p, const std::uint8_t* image, int y, int pixels, Bf16* to) {
  const std::size_t line = Pixels::line_size(pixels);
  std::memset(to, 0, line * sizeof(Bf16));
  if (y < 0 || y >= p.height) return;
  const std::uint8_t* const from = image + to_size(y) * to_size(p.width) * kColours;
  const int room = pixels + 2 - p.left;
  const std::size_t count = to_size(p.width < room ? p.width : room) * kColours;
  to += to_size(p.left) * kColours;
  std::size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) bytes_to_factors(from + i, p.shift, to + i);
  if (i == count) return;
  std::uint8_t rest[kBlock] = {};
  Bf16 factors[kBlock];
  std::memcpy(rest, from + i, count - i);
  bytes_to_factors(rest, p.shift, factors);
  std::memcpy(to + i, factors, (count - i) * sizeof(Bf16));
}

/// Windows of three lines, [pixel][3 rows][3 columns][3 colours] and 5 factors that are left as
/// they are. Each row of a window is written with what follows it, which the next one replaces.
inline void write_windows(const Bf16* const (&lines)[3], int pixels, Bf16* to) {
  for (int x = 0; x < pixels; ++x, to += kRowFactors) {
    const std::size_t at = to_size(x) * kColours;
    const auto half = [&](int line, int place) __attribute__((always_inline)) {
      *reinterpret_cast<HalfAnywhere*>(to + place) =
          *reinterpret_cast<const HalfAnywhere*>(lines[line] + at);
    };
    half(0, 0);
    half(1, kRun);
    *reinterpret_cast<EightAnywhere*>(to + 2 * kRun) =
        *reinterpret_cast<const EightAnywhere*>(lines[2] + at);
    to[2 * kRun + 8] = lines[2][at + 8];
  }
}

/// Line i of those that windows see, and where [begin, end) of them are written.
[[gnu::always_inline]] inline Bf16* line_at(Bf16* lines, int i, int pixels) {
  return lines + to_size(i % kLines) * Pixels::line_size(pixels);
}
inline void write_lines(const MapRows& from, int begin, int end, int pixels, Bf16* lines) {
  for (int i = begin; i < end; ++i) {
    write_line(from.pixels, from.images[0], i - from.pixels.above, pixels,
               line_at(lines, i, pixels));
  }
}

/// Rows y and y + 1 of the map of windows. `goes_on`: the two rows before were the last to be
/// written, so that two of four lines are there.
inline void write_windows_of_pixels(const MapRows& from, int y, bool goes_on, int pixels,
                                    Bf16* lines, Bf16* to, Bf16* below) {
  write_lines(from, goes_on ? y + 2 : y, y + 4, pixels, lines);
  const auto line = [&](int i) { return line_at(lines, y + i, pixels); };
  write_windows({line(0), line(1), line(2)}, pixels, to);
  write_windows({line(1), line(2), line(3)}, pixels, below);
}

/// Row `y` of that map as pairs of pixels: write_source_row() in gradients.inl. The last five
/// channels are no zeros here, and their sums are not used. `goes_on`: as above, of one row.
inline void write_pairs_of_pixels(const GradientShape& s, const MapRows& from, int y, bool goes_on,
                                  Bf16* lines, Bf16* to) {
  constexpr Word kFirst{0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 18, 19, 20, 21, 22};
  constexpr Word kSecond{7, 8, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29};
  const int pairs = to_int(s.pairs());
  write_lines(from, goes_on ? y + 2 : y, y + 3, 2 * pairs, lines);
  const Bf16* const line[3] = {line_at(lines, y, 2 * pairs), line_at(lines, y + 1, 2 * pairs),
                               line_at(lines, y + 2, 2 * pairs)};
  for (int i = 0; i < pairs; ++i, to += kRowFactors) {
    Word run[3];
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k) {
      const Bf16* const at = line[k] + to_size(i) * 2 * kColours;
      const Half low = *reinterpret_cast<const HalfAnywhere*>(at);
      const Half high = *reinterpret_cast<const HalfAnywhere*>(at + kColours);
      run[k] = __builtin_convertvector(low, Word) | __builtin_convertvector(high, Word) << 16;
    }
    store(to, __builtin_shuffle(run[0], run[1], kFirst));
    store(to + s.pairs() * kRowFactors, __builtin_shuffle(run[1], run[2], kSecond));
  }
}

}  // namespace
}  // namespace cputrain::cpu::amx
