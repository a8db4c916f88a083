#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cpu/sparse/first_layer.h"

namespace cputrain::cpu {

/// The first block of a network by first_layer.h, for some images on all threads.
class FirstConvolution {
 public:
  FirstConvolution(const first_layer::Shape&, int threads);

  /// Memory for either way, 64-byte aligned.
  std::size_t scratch_bytes() const;

  using Images = std::span<const std::uint8_t* const>;
  /// As first_layer::forward(), for whole images, which follow each other in dst and winners.
  void forward(Images, const float* weights, const float* bias, float* dst, std::uint8_t* winners,
               std::byte* scratch) const;
  /// Rows go in parts that have sums of their own, added in their order: the same bits every time,
  /// whichever thread takes a part.
  void backward_weights(Images, const first_layer::Outputs&, float* diff_weights, float* diff_bias,
                        bool adds, std::byte* scratch) const;

 private:
  std::size_t scratch_of_thread() const;
  std::size_t sums_of_part() const;
  std::size_t parts() const;     ///< that the rows of all images are cut into on the way back
  std::size_t map_size() const;  ///< numbers in the output of one image

  first_layer::Shape shape_;
  std::size_t threads_;
  InstructionSet set_;
};

}  // namespace cputrain::cpu
