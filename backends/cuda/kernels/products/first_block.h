#pragma once

#include "backends/cuda/kernels/elementwise.h"

/// The first block of many networks as one kernel in each direction: bytes of images become
/// numbers, a convolution of 3 x 3 with stride 1 reads them, its bias is added, and a max pool of 2
/// x 2 with stride 2 and a ReLU follow. Of all maps the last one alone goes to memory, stored as
/// `Numbers` say.
///
/// Weights lie as those of convolutions do (convolution.h), and numbers are multiplied as theirs
/// are (gemm_fragments.h). Sums are floats; the largest of a pool's window is rounded, once.
/// Partial sums of gradients are added in order, so that all have the same bits from run to run on
/// devices with as many multiprocessors.
namespace cputrain::cuda {

struct FirstBlock {
  ImageLoad load;  ///< its images are those of the pass
  int zeros = 0;   ///< rows and columns of them around the images
  MapShape dst;    ///< pooled; each window lies on the convolution's output

  static constexpr int kPositions = 9;                             ///< of the kernel
  static constexpr int kWeightsEach = kPositions * kChannelBlock;  ///< a channel's
  constexpr std::int64_t weights() const { return offset_of_row(dst.channels, kWeightsEach); }
};

/// Who won of a chunk of dst's numbers: a bit of four that each has. None is set where ReLU cut.
using WinnerWord = std::uint32_t;
inline constexpr int kWinnersOfWord = 8;
/// The bit of a number of the chunk and a place in the pool's window, row by row. Those of two
/// places side by side lie in neighbouring bytes.
CPUTRAIN_HOST_DEVICE constexpr WinnerWord winner(int number, int place) {
  return WinnerWord{1} << (number / 4 * 16 + place % 2 * 8 + place / 2 * 4 + number % 4);
}

/// Slices into which tiles are cut, each of which has sums of its own: enough for a device of so
/// many multiprocessors. And floats of these sums.
int first_block_slices(Numbers, const FirstBlock&, int multiprocessors);
constexpr std::int64_t first_block_sums(const FirstBlock& block, int slices) {
  return offset_of_row(slices, block.weights() + block.dst.channels);
}

/// `bias`: null: there is none. `winners`: null: not wanted.
void first_block_forward(Stream, Numbers, const FirstBlock&, int slices, const void* weights,
                         const float* bias, void* dst, WinnerWord* winners);

/// diff_weights (and, where it is not null, diff_bias) = the gradients, or are added to.
void first_block_backward_weights(Stream, Numbers, const FirstBlock&, int slices,
                                  const void* diff_dst, const WinnerWord* winners, float* sums,
                                  float* diff_weights, float* diff_bias, bool add);

}  // namespace cputrain::cuda
