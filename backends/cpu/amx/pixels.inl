#pragma once

// The first layer's source: bytes of images as factors. Included by convolve.inl and gradients.inl.
#include "backends/cpu/amx/vectors.inl"

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
  const std::uint8_t* const from = image + size(y) * size(p.width) * kColours;
  const int room = pixels + 2 - p.left;
  const std::size_t count = size(p.width < room ? p.width : room) * kColours;
  to += size(p.left) * kColours;
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
    const std::size_t at = size(x) * kColours;
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

/// Rows y and y + 1 of the map of windows.
inline void write_windows_of_pixels(const MapRows& from, int y, int pixels, Bf16* lines, Bf16* to,
                                    Bf16* below) {
  const std::size_t line = Pixels::line_size(pixels);
  for (int i = 0; i < kLines; ++i) {
    write_line(from.pixels, from.images[0], y - from.pixels.above + i, pixels,
               lines + size(i) * line);
  }
  write_windows({lines, lines + line, lines + 2 * line}, pixels, to);
  write_windows({lines + line, lines + 2 * line, lines + 3 * line}, pixels, below);
}

/// Row `y` of that map as pairs of pixels: write_source_row() in gradients.inl.
inline void write_pairs_of_pixels(const GradientShape& s, const MapRows& from, int y, Bf16* memory,
                                  Bf16* to) {
  const int pixels = static_cast<int>(2 * s.pairs());
  const std::size_t line = Pixels::line_size(pixels);
  Bf16* const lines = memory + size(pixels) * kRowFactors;
  for (int i = 0; i < 3; ++i) {
    write_line(from.pixels, from.images[0], y - from.pixels.above + i, pixels,
               lines + size(i) * line);
  }
  std::memset(memory, 0, size(pixels) * kRowFactors * sizeof(Bf16));
  write_windows({lines, lines + line, lines + 2 * line}, pixels, memory);
  for (int block = 0; block < 2; ++block) {
    const Bf16* window = memory + block * kBlock;
    for (int i = 0; i < pixels; i += 2, window += 2 * kRowFactors, to += kRowFactors) {
      const Half low = *reinterpret_cast<const HalfThere*>(window);
      const Half high = *reinterpret_cast<const HalfThere*>(window + kRowFactors);
      store(to, __builtin_convertvector(low, Word) | __builtin_convertvector(high, Word) << 16);
    }
  }
}

}  // namespace
}  // namespace cputrain::cpu::amx
