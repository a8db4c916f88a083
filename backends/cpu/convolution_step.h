#pragma once

#include <optional>
#include <vector>

#include "backends/cpu/library_convolution.h"
#include "backends/cpu/method_trials.h"
#include "backends/cpu/sparse/first_convolution.h"
#include "backends/cpu/sparse/sparse_convolution.h"

namespace cputrain {

/// A ConvolutionBlock by one method for each direction: the library's primitives, or the scheme
/// that skips zeros.
class ConvolutionStep final : public Step {
 public:
  ConvolutionStep(const Planning&, int step, const ConvolutionBlock&, const Source& src,
                  const Map& dst, std::size_t first_parameter);

  std::vector<std::unique_ptr<ParameterFormat>> formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void append_times(std::vector<LayerTime>&) const override;
  std::string methods() const override { return to_text(methods_); }
  void use_methods(std::string_view) override;
  bool trying() const override { return trials_ && trials_->running(); }
  void try_again() override;

 private:
  void make_candidates(const Planning&, const std::vector<ConvolutionMethod>&);
  bool is_trial(const Execution&) const;
  MethodTimes spent() const;
  void plan_sparse(const Planning&);
  void plan_first(const Planning&);
  void split_pictures_once();
  void forward_by_sparse(const Execution&);
  void backward_by_sparse(const Execution&);
  std::string describe(ConvolutionMethod, Direction) const;
  bool has(ConvolutionMethod) const;
  LibraryConvolution& library(ConvolutionMethod);

  ConvolutionPlace place_;
  ConvolutionMethods methods_;
  std::optional<MethodTrials> trials_;  ///< where there is a choice that is to be measured
  MethodTimes before_trial_;
  std::optional<SparseConvolution> sparse_;
  std::optional<FirstConvolution> first_;  ///< in place of sparse_ where pictures are read
  std::optional<LibraryConvolution> direct_, winograd_;
  dnnl::memory::desc kernel_layout_;

  MemoryPlan::Block scatter_forward_{}, scatter_backward_{}, gather_{}, turned_block_{};
  std::byte *forward_scratch_ = nullptr, *backward_scratch_ = nullptr, *gather_scratch_ = nullptr;
  float* turned_ = nullptr;  ///< the kernel, as backward-data wants it
  float* src_value_ = nullptr;
  const float *weights_ = nullptr, *bias_value_ = nullptr;
  float *dst_value_ = nullptr, *dst_diff_ = nullptr, *src_diff_ = nullptr;
  float *diff_weights_ = nullptr, *diff_bias_ = nullptr;
  std::uint8_t* winners_ = nullptr;
  FirstConvolution::Pictures pictures_;  ///< of the last forward pass
  bool split_ = false;                   ///< and src_value_ has their planes
  ConvolutionTimes times_;
};

}  // namespace cputrain
