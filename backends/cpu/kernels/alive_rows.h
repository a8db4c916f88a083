#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/instruction_set.h"

/// A dense layer's products where most of its inputs are zero, as behind a ReLU. Input r meets
/// row r of the weights only, so a row whose input is zero in every image of the micro-batch is
/// dead: it is not read. (A GEMM streams all weights once for each of its three products, which is
/// most of its time when images are few.) Exact; NaN counts as alive.
///
/// Images x (images, in), outputs y (images, out) and weights W (in, out) lie row by row, y and W
/// without gaps. Threads divide rows or columns such that the same bits come out for any number of
/// them.
namespace cputrain::cpu::alive_rows {

struct Sizes {
  std::size_t images;  ///< at most kMostImages
  std::size_t in;
  std::size_t out;    ///< a multiple of kColumns
  std::size_t row_x;  ///< numbers from one image of x, or of its gradient, to the next
};
constexpr std::size_t kMostImages = 32;
constexpr std::size_t kColumns = 16;
constexpr std::size_t kRows = 64;  ///< in a block; the last may be shorter

constexpr std::size_t blocks(std::size_t in) { return (in + kRows - 1) / kRows; }

/// masks[block * images + image]: bit i is set where number block * 64 + i of the image is not
/// zero.
constexpr std::size_t mask_count(const Sizes& s) { return s.images * blocks(s.in); }
/// Fills the masks and returns how many bits are set.
std::size_t find_alive(InstructionSet, const Sizes&, const float* x, std::uint64_t* masks);

/// Whether this beats a GEMM, for `alive` numbers of so many `images` in one call. As measured on a
/// Zen 5 core for 25088 x 512 weights that have left the caches: few images pay because memory is
/// the limit, many where arithmetic is and enough of it is skipped. Weights that stay in the cache
/// are not worth the trouble.
bool may_pay(std::size_t in, std::size_t out);
bool forward_pays(std::size_t images, std::size_t in, std::size_t alive);
bool backward_pays(std::size_t images, std::size_t in, std::size_t alive);

/// Floats of scratch that forward() needs.
constexpr std::size_t kSlabs = 16;
constexpr std::size_t forward_scratch(const Sizes& s) { return kSlabs * s.images * s.out; }

/// y += x W. Slabs of rows are added up on their own and then one after another.
void forward(InstructionSet, const Sizes&, const std::uint64_t* masks, const float* x,
             const float* weights, float* scratch, float* y);

/// diff_x = diff_y W^T where x is alive and zero elsewhere, or (`add`) added to where x is alive.
/// Only for an x that a ReLU made: it throws the gradient of its zeros away.
void backward_data(InstructionSet, const Sizes&, const std::uint64_t* masks, const float* weights,
                   const float* diff_y, bool add, float* diff_x);

/// diff_weights = x^T diff_y, or (`add`) added to it: then dead rows are not touched.
void backward_weights(InstructionSet, const Sizes&, const std::uint64_t* masks, const float* x,
                      const float* diff_y, bool add, float* diff_weights);

}  // namespace cputrain::cpu::alive_rows
