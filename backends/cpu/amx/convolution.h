#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/cpu/amx/kernels.h"
#include "compute/executor/memory_plan.h"
#include "model/layer.h"

namespace cputrain::cpu::amx {

/// A convolution of stride 1, of 3 x 3 or 1 x 1, with what is behind it: a 2 x 2 max pool and a
/// ReLU, or one of them, or nothing.
struct ConvolutionShape {
  compute::SampleLayout src, wide, dst;  ///< wide: of the convolution's output; dst: of the block's
  model::PadAmount rows, columns;
  bool pool, relu;
  int kernel = 3;
  /// 1: factors are numbers rounded to bf16. 3: a number is the sum of three such factors.
  int parts = 1;
  /// Where images are read: their numbers are byte * scale + offset. Not with `parts`.
  std::optional<model::Input> image{};
};

/// What is convolved: a map, or images where they lie.
struct Source {
  Source(const float* numbers) : map(numbers) {}
  Source(const std::uint8_t* const* pointers) : images(pointers) {}
  const float* map = nullptr;
  const std::uint8_t* const* images = nullptr;
};

/// Whether a product of such numbers with others in range is that of floats where `parts` is 3:
/// one of them at least is not tiny, or all are zero. README.md has the bound that follows.
bool in_range(const float* numbers, std::size_t count);
constexpr float kLeastLargest = 0x1p-48f;

/// Computes it in tiles of bf16: README.md beside this file. Factors (maps, gradients, weights) are
/// rounded, sums are floats. Kernels lie as oneDNN's OIhw16i16o, those that read images as its
/// Ohwi16o. Forward and backward_data have the same bits for any number of threads and images.
class Convolution {
 public:
  /// Whether channels fill blocks of 16 and padding is at most 2, and none for 1 x 1.
  static bool possible(const ConvolutionShape&);
  Convolution(const ConvolutionShape&, int threads, const Kernels&);

  const char* name() const { return shape_.parts == 1 ? kernels_.name : kernels_.float_name; }
  /// Memory for forward and backward_data, and for backward_weights, which begins a cache line.
  std::size_t pass_bytes() const;
  std::size_t gradient_bytes() const;

  /// `winners` as max_pool() writes them; null where no backward pass will follow, or no pool is.
  /// `bias` may be null.
  void forward(int images, const Source& src, const float* weights, const float* bias, float* dst,
               std::uint8_t* winners, std::byte* scratch) const;

  /// What the backward passes read: gradients of dst, dst itself and the winners of its pool.
  struct Outputs {
    const float* diff;
    const float* dst;
    const std::uint8_t* winners;
  };
  /// Writes all of diff_src, or adds to it.
  void backward_data(int images, const Outputs&, const float* weights, float* diff_src, bool adds,
                     std::byte* scratch) const;
  /// `diff_bias` may be null.
  void backward_weights(int images, const Source& src, const Outputs&, float* diff_weights,
                        float* diff_bias, bool adds, std::byte* scratch) const;

 private:
  struct Strips;
  PassShape forward_shape() const;
  PassShape backward_shape() const;
  GradientShape gradient_shape() const;
  std::size_t parts() const;
  MapRows source_rows(const Source& src) const;
  std::size_t pass_bytes_of_thread(const PassShape&) const;
  std::size_t pass_bytes_of(const PassShape&) const;
  Shape flat(const compute::SampleLayout&) const;
  int source_blocks() const;
  std::size_t source_size() const;
  void finish_image_kernel(const GradientShape&, const float* sums, int out, bool adds,
                           float* kernel) const;
  MapRows gradient_rows(const Outputs&) const;
  void pack(const PassShape&, const float* weights, bool turned, Bf16* to) const;
  void run(const PassShape&, int images, std::size_t from_image, std::size_t to_image,
           const PassRun& of_first, std::byte* scratch) const;

  ConvolutionShape shape_;
  std::size_t threads_;
  const Kernels& kernels_;
};

}  // namespace cputrain::cpu::amx
