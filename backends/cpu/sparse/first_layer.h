#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/instruction_set.h"
#include "model/layer.h"

/// The first block of a network for images in one pass each way: bytes to numbers, a 3 x 3
/// convolution of stride 1 from three channels, bias, 2 x 2 max pool and ReLU. Nothing as wide as
/// the convolution's output is ever in memory.
///
/// Forward computes whole windows: their four outputs, for a few windows and blocks of channels at
/// a time, in registers. Backward-weights knows that only a window's winner has a gradient, and
/// that only where the ReLU let it pass: it lists these by channel, then adds for each the 3 rows
/// of 9 numbers (3 columns of 3 colours, adjacent in an image) around it, times the gradient.
///
/// A block has b channels: 16 with AVX-512, else 8. Weights are [channels / b][3 rows][3 columns]
/// [3 colours][b] (oneDNN's Ohwi16o), pooled maps nChw{b}c. All functions run on the calling
/// thread; the same arguments give the same bits.
namespace cputrain::cpu::first_layer {

struct Shape {
  int height, width;               ///< the image's
  model::PadAmount rows, columns;  ///< zeros around it, at most 2 each
  int channels;                    ///< outputs; a multiple of the block
  PerColour scale, offset;         ///< number = byte * scale + offset
  bool relu;

  /// The pooled map's size, at least 1. A last odd row or column of the convolution is in no
  /// window.
  [[gnu::always_inline]] int window_rows() const {
    return (height + rows.before + rows.after - 2) / 2;
  }
  [[gnu::always_inline]] int window_columns() const {
    return (width + columns.before + columns.after - 2) / 2;
  }
};

constexpr int block(InstructionSet set) { return set == InstructionSet::avx512 ? 16 : 8; }

/// Floats of scratch that a call of forward() or backward_weights() needs.
std::size_t scratch_size(const Shape&);

/// Writes rows [begin, end) of the pooled map of one image (height, width, 3), and to `winners`
/// (null: not wanted), in the same places, the position row * 2 + column of the first largest in
/// each window. `bias` may be null.
void forward(InstructionSet, const Shape&, const std::uint8_t* image, const float* weights,
             const float* bias, int begin, int end, float* scratch, float* dst,
             std::uint8_t* winners);

/// What forward() wrote, and the gradient of `dst`.
struct Outputs {
  const float* dst;  ///< read only where there is a ReLU
  const std::uint8_t* winners;
  const float* diff;
};

/// Sums of weight and bias gradients over windows and images, in an order of their own; the
/// caller clears them first.
std::size_t sums_size(const Shape&);

/// Adds what rows [begin, end) of the pooled map of one image contribute.
void backward_weights(InstructionSet, const Shape&, const std::uint8_t* image, const Outputs&,
                      int begin, int end, float* scratch, float* sums);

/// The sums as gradients in the weights' layout, written or added. `diff_bias` may be null.
void write_gradients(InstructionSet, const Shape&, const float* sums, bool add, float* diff_weights,
                     float* diff_bias);

}  // namespace cputrain::cpu::first_layer
