#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/amx/tiles.h"
#include "core/casts.h"

/// The inner loops of the scheme that README.md beside this file describes, for tiles of one kind.
/// Maps are nChw16c; `plane` is the distance from one block of 16 channels to the next, in numbers.
/// Kernels lie as oneDNN's OIhw16i16o.
///
/// A number is one factor, or the sum of three (`parts`): then products are sums of six.
namespace cputrain::cpu::amx {

constexpr int kBlock = 16;  ///< channels in a block of a map

/// The factors of two numbers in three parts whose product is taken, the least first. The three
/// that are left out are below 2^-23 of a product of numbers.
struct PartProduct {
  int a, b;
};
constexpr PartProduct kPartProducts[] = {{0, 2}, {1, 1}, {2, 0}, {0, 1}, {1, 0}, {0, 0}};
constexpr int kMostProducts = 6;

// Inlined always, since files for several instruction sets have these.
#define CPUTRAIN_INLINE [[gnu::always_inline]]

/// Blocks of a map that a tile's row of 32 factors, or a pair of tiles, takes together.
CPUTRAIN_INLINE constexpr int pairs_of(int blocks) { return (blocks + 1) / 2; }

/// Factors of one step of the kernel of 2 x 2 tiles: two tiles of A, and the first of two of B.
struct Step {
  const Bf16* a[2];
  const Bf16* b;
};

/// The first products of so many parts, which end with those of the list.
CPUTRAIN_INLINE constexpr int first_product(int parts) {
  return parts == 1 ? kMostProducts - 1 : 0;
}
CPUTRAIN_INLINE constexpr int products_of(int parts) {
  return kMostProducts - first_product(parts);
}

/// Images of three colours, as a map of the 3 x 3 pixels around each of its own: 27 channels and 5
/// zeros. A 3 x 3 convolution of the image is then one of 1 x 1.
struct Pixels {
  int height, width;  ///< an image's
  int above, left;    ///< rows and columns of zeros around it
  float shift;        ///< a number is a byte and this

  /// Factors of a row of bytes with what its first `pixels` windows reach.
  CPUTRAIN_INLINE static constexpr std::size_t line_size(int pixels) {
    return to_size((pixels + 2) * 3 + 63) / 32 * 32;
  }
};

/// Rows of a map of blocks, or what a way back has in place of one: gradients of a block's output,
/// with what says where they go.
struct MapRows {
  const float* values;          ///< the first row's first pixel in the first block
  const float* alive;           ///< gradients count where it is above zero; null: everywhere
  const std::uint8_t* winners;  ///< each goes to a place of its 2 x 2 window; null: to its own
  int height, width;            ///< what `values` points to
  int blocks;
  std::size_t plane;
  const std::uint8_t* const* images = nullptr;  ///< in place of values
  Pixels pixels{};

  /// The same rows of another image, whose numbers, or whose pointer, are so many further.
  CPUTRAIN_INLINE MapRows behind(std::size_t numbers) const {
    MapRows other = *this;
    if (images) {
      other.images += numbers;
      return other;
    }
    other.values += numbers;
    if (alive) other.alive += numbers;
    if (winners) other.winners += numbers;
    return other;
  }
};

/// A convolution of stride 1 over one image, forward or back to its source.
struct PassShape {
  int kernel, parts;     ///< 1 or 3 rows and columns; 1 or 3 factors to a number
  int above, left;       ///< rows and columns of zeros around what is read
  int height, width;     ///< outputs that are wanted
  int ins, outs;         ///< blocks of 16 channels
  bool pools;            ///< windows of 2 x 2 outputs; both extents are even
  std::size_t to_plane;  ///< the written map's, as `plane`

  CPUTRAIN_INLINE int columns() const { return (width + kTileRows - 1) / kTileRows; }
  /// Pixels of a row as factors, which its taps read.
  CPUTRAIN_INLINE int pixels() const { return columns() * kTileRows + kernel - 1; }
  CPUTRAIN_INLINE int taps() const { return kernel * kernel; }
  CPUTRAIN_INLINE std::size_t steps() const {
    return to_size(pairs_of(ins) * taps() * products_of(parts));
  }
  /// Factors of a row, of the weights of a pair of outputs and of all; `part`: of one part of them.
  CPUTRAIN_INLINE std::size_t row_part() const {
    return to_size(pairs_of(ins)) * to_size(pixels()) * kRowFactors;
  }
  CPUTRAIN_INLINE std::size_t row_size() const { return to_size(parts) * row_part(); }
  CPUTRAIN_INLINE std::size_t weights_part() const {
    return to_size(pairs_of(ins) * taps()) * 2 * kFactors;
  }
  CPUTRAIN_INLINE std::size_t weights_of_pair() const { return to_size(parts) * weights_part(); }
  CPUTRAIN_INLINE std::size_t weights_size() const {
    return to_size(pairs_of(outs)) * weights_of_pair();
  }
};
constexpr int kRing = 4;   ///< rows of factors that two rows of outputs read, or more
constexpr int kLines = 4;  ///< rows of bytes that they read

/// What one call of `convolve` computes: pairs of rows of outputs [first, last).
struct PassRun {
  MapRows from;
  const Bf16* weights;  ///< as `pack_kernel` makes them
  const float* bias;    ///< null: none
  bool relu, adds;
  float scale = 1;  ///< of sums, above zero
  float* to;
  std::uint8_t* winners;  ///< of windows; null: none
  int first = 0, last = 0;
  Bf16* rows = nullptr;   ///< kRing rows of factors, which begin cache lines
  Step* steps = nullptr;  ///< PassShape::steps()
  Bf16* lines = nullptr;  ///< kLines of PassShape::pixels(), where images are read
};

/// Gradients of a kernel, from rows of a source and of gradients of the convolution's output.
struct GradientShape {
  int kernel, parts;      ///< as of PassShape
  int above, left;        ///< padding of the source
  int height, width;      ///< outputs that have gradients
  int ins, outs;          ///< blocks of 16 channels
  int strip;              ///< rows of outputs whose factors are made at once; even with a pool
  std::size_t src_image;  ///< numbers from one image of the source to the next
  std::size_t dst_image;  ///< the same of gradients

  CPUTRAIN_INLINE int steps() const { return (width + 31) / 32; }  ///< tiles that cover a row
  CPUTRAIN_INLINE int taps() const { return kernel * kernel; }
  /// Factors of a row of outputs, [part][block][step] tiles.
  CPUTRAIN_INLINE std::size_t output_part() const {
    return to_size(2 * pairs_of(outs) * steps()) * kFactors;
  }
  CPUTRAIN_INLINE std::size_t output_row() const { return to_size(parts) * output_part(); }
  /// Factors of a row of the source, [part][copy][block][pair of pixels] rows of tiles.
  CPUTRAIN_INLINE std::size_t pairs() const { return to_size(steps() * kTileRows + 1); }
  CPUTRAIN_INLINE std::size_t source_copy() const {
    return to_size(2 * pairs_of(ins)) * pairs() * kRowFactors;
  }
  CPUTRAIN_INLINE int copies() const { return kernel == 1 ? 1 : 2; }
  CPUTRAIN_INLINE std::size_t source_part() const { return to_size(copies()) * source_copy(); }
  CPUTRAIN_INLINE std::size_t source_row() const { return to_size(parts) * source_part(); }
  /// How many a strip of one image takes.
  CPUTRAIN_INLINE std::size_t factors() const {
    return to_size(strip) * output_row() + to_size(strip + kernel - 1) * source_row();
  }
  CPUTRAIN_INLINE std::size_t steps_of_row() const { return to_size(steps() * products_of(parts)); }
  CPUTRAIN_INLINE std::size_t step_count() const { return to_size(strip) * steps_of_row(); }
  /// Where images are read: the lines that a row of windows is made of.
  CPUTRAIN_INLINE std::size_t lines_size() const {
    return kLines * Pixels::line_size(to_int(2 * pairs()));
  }
  /// Numbers: sums of the kernel, [pair of outs][pair of ins][tap][2][2] tiles, then of the bias.
  CPUTRAIN_INLINE std::size_t kernel_sums() const {
    return to_size(4 * pairs_of(outs) * pairs_of(ins) * taps()) * kSums;
  }
  CPUTRAIN_INLINE std::size_t sums() const {
    return kernel_sums() + to_size(2 * pairs_of(outs) * kBlock);
  }
};

/// What one call of `add_gradients` adds to the sums: rows of outputs [first, last), at most a
/// strip, of some images behind each other. With a pool `first` and `last` are even.
struct GradientRun {
  MapRows source, gradients;  ///< the first image's
  int images;
  int first, last;
  Bf16* factors;  ///< as many for each image; begin a cache line, as do sums
  Step* steps;    ///< the same
  float* sums;
  Bf16* lines = nullptr;  ///< GradientShape::lines_size(), where images are read
};

/// A matrix of floats, row by row, `row` numbers apart. Columns are a multiple of 16.
struct Matrix {
  const float* data;
  std::size_t row;
  int rows, columns;
};

/// What a matrix is as tiles, [pair of blocks of 16][step][2]: a step has 32 factors along the sum.
/// What fills the last pair or the last step is zero.
enum class TileForm {
  rows,          ///< A: blocks of rows, sums along columns
  columns,       ///< A transposed: blocks of columns, sums along rows
  pairs,         ///< B: blocks of columns, sums along rows
  pairs_of_rows  ///< B transposed: blocks of rows, sums along columns
};

/// A product of such matrices.
struct TileProduct {
  const Bf16* a;
  const Bf16* b;
  int steps;
  int rows, columns;  ///< the product's: A's blocks, B's
  bool transposed;    ///< what is written; then `rows`, else `columns`, is a multiple of 16
  bool adds;
  float* to;
  std::size_t row;           ///< numbers between rows of what is written
  bool past_caches = false;  ///< what is written is large, and its rows begin cache lines
};

struct Kernels {
  const char* name;
  const char* float_name;  ///< where numbers are sums of three factors
  /// sums (16 x 16) += a b, each one tile. For tests, and to see whether tiles work.
  void (*multiply_add_once)(const Bf16* a, const Bf16* b, float* sums);
  /// The kernel of 2 x 2 tiles over the same steps of two tiles each, so many rounds: how quick
  /// tiles are.
  void (*multiply_often)(const Bf16* a, const Bf16* b, int steps, int rounds, float* sums);
  /// Tiles of one pair of outputs for all inputs: the kernel's, or (`turned`) that of the
  /// convolution that leads back, whose ins are the kernel's outs.
  void (*pack_kernel)(const PassShape&, const float* kernel, bool turned, int out_pair, Bf16* to);
  void (*convolve)(const PassShape&, const PassRun&);
  void (*add_gradients)(const GradientShape&, const GradientRun&);
  /// The kernel's gradient for one block of outputs, `kernel` its part, written or added.
  void (*finish_kernel)(const GradientShape&, const float* sums, int out, bool adds, float* kernel);
  void (*pack_matrix)(const Matrix&, TileForm, Bf16* to);
  void (*multiply)(const TileProduct&);
};

/// On this machine's tiles, where hardware_works().
const Kernels& hardware_kernels();
/// On emulated ones: the same code, and for processors that have no AVX-512.
const Kernels& avx512_kernels();
const Kernels& avx2_kernels();

}  // namespace cputrain::cpu::amx
