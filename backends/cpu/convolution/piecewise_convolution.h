#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "backends/cpu/convolution/convolution_operations.h"

namespace cputrain::cpu {

/// A block by the library's primitives or our Winograd kernels, in pieces of a few images: each
/// piece is convolved into a map that stays in the cache and is pooled at once; going back, its
/// gradient is unpooled there and used at once.
class PiecewiseConvolution {
 public:
  /// Without a layout for the kernel in the arena it takes the one that forward likes.
  PiecewiseConvolution(const Planning&, const ConvolutionPlace&, ConvolutionMethod,
                       const std::optional<dnnl::memory::desc>& kernel_layout);

  /// Uses the same scratch memory as another of the same place that is never run at the same time.
  void share_memory(compute::MemoryPlan&, const PiecewiseConvolution&) const;
  const dnnl::memory::desc& kernel_layout() const { return kernel_layout_; }
  /// For the largest number of images.
  const ConvolutionOperations& operations() const;
  void bind(const DnnlBindings&);
  /// Called behind each piece, with the images that are written.
  using Written = std::function<void(const Range& images)>;
  void forward(const Execution&, ConvolutionTimes&, const Written&);
  /// Gradients of the weights, of the source, or both.
  void backward(const Execution&, bool weights, bool data, ConvolutionTimes&, const Written&);

 private:
  struct PieceCalls {
    Piece piece{};
    Call convolve, weights_to_arena, weights_to_scratch, data;
    /// Where primitives read copies: in forward, for the weights, for the data.
    Call fill_src, fill_src_again, fill_weights_diff, fill_data_diff;
    Call drain_wide, drain_src_diff;  ///< where they write them
    /// What the kernel for the weights reads in place and wants in the caches; or null.
    const std::byte *fetched_src = nullptr, *fetched_diff = nullptr;
    bool shares_diff = false;       ///< the copy for the weights serves the data, too
    const float* pooled = nullptr;  ///< what the pool reads, and how it lies
    MapForm pooled_form = MapForm::blocked;
    Call from_foreign_to_arena,
        from_foreign_to_scratch;  ///< where the library wants another layout
    std::optional<std::size_t> forward_copy, data_copy;
  };
  /// What one number of images needs.
  struct Prepared {
    std::vector<PieceCalls> pieces;
    std::vector<std::size_t> forward_copies, data_copies;  ///< to refresh first
  };

  void set_kernel_layout(const Planning&, const dnnl::memory::desc&);
  void plan_pieces(const Planning&);
  dnnl::memory::desc float_kernel_layout(const Planning&, const ConvolutionOperations&) const;
  const ConvolutionOperations& operations_for(const Planning&, int images);
  void plan_scratch(const Planning&);
  void plan_map_copies(const Planning&);
  /// Whether the pool reads what the primitive wrote channels-last.
  bool pools_copy(const ConvolutionOperations&) const;
  /// Whether one copy of the gradient serves both ways back.
  bool shares_diff(const ConvolutionOperations&) const;
  void pool_piece(const PieceCalls&);
  /// Turns the gradient of the block's output into that of the convolution's.
  void unpool_piece(const Piece&);
  void bind_piece(const DnnlBindings&, PieceCalls&) const;
  void bind_forward(const DnnlBindings&, PieceCalls&, const ConvolutionOperations&,
                    std::byte* src) const;
  void bind_data_gradient(const DnnlBindings&, PieceCalls&, const ConvolutionOperations&,
                          std::byte* diff) const;
  void bind_weight_gradients(const DnnlBindings&, PieceCalls&, const ConvolutionOperations&,
                             std::byte* src, std::byte* diff) const;
  void add_weight_gradients(const PieceCalls&, bool overwrite);
  void add_source_gradient(const PieceCalls&);

  ConvolutionPlace place_;
  ConvolutionMethod method_;
  dnnl::memory::desc kernel_layout_;
  std::map<int, ConvolutionOperations> operations_;  ///< by number of images
  std::vector<Prepared> prepared_;                   ///< as Planning::sizes
  std::optional<KernelCopies> forward_copies_, data_copies_;

  MapCopy forward_src_, forward_wide_, backward_src_, weights_diff_, data_diff_, src_diff_copy_;
  compute::MemoryPlan::Block wide_value_{}, wide_diff_{}, forward_scratch_{}, backward_scratch_{},
      foreign_gradient_{}, kernel_gradient_{}, bias_gradient_{}, piece_diff_{};

  // Numbers as dst and src have them; in front of a pool floats.
  std::byte *dst_value_ = nullptr, *dst_diff_ = nullptr;
  std::byte *src_diff_ = nullptr, *piece_diff_data_ = nullptr;  ///< the source's; one piece of it
  float *wide_data_ = nullptr, *wide_diff_data_ = nullptr;      ///< one piece
  std::uint8_t* winners_ = nullptr;
  float *kernel_sum_ = nullptr, *bias_sum_ = nullptr;  ///< gradients in the arena
  float *kernel_part_ = nullptr, *bias_part_ = nullptr;
};

}  // namespace cputrain::cpu
