#pragma once

#include <optional>
#include <vector>

#include "backends/cpu/convolution/method_trials.h"
#include "backends/cpu/convolution/piecewise_convolution.h"
#include "backends/cpu/convolution/pooled_winograd.h"
#include "backends/cpu/convolution/skipping_convolution.h"
#include "backends/cpu/convolution/tile_convolution.h"
#include "backends/cpu/ops/map_listener.h"

namespace cputrain::cpu {

/// A ConvolutionBlock by one method for each direction, chosen by rule or by trials.
class ConvolutionOp final : public Op, public compute::MethodChoice {
 public:
  ConvolutionOp(const Planning&, int op, const ConvolutionBlock&, const Source& src,
                const std::vector<Source>& added, const Activation& dst,
                std::size_t first_parameter);

  /// Who reads what it writes; they live as long. No operator may change that before they read it.
  void tell_of_value(MapListener& listener) { value_listener_ = &listener; }
  void tell_of_source_gradient(MapListener& listener) { gradient_listener_ = &listener; }

  std::vector<std::unique_ptr<compute::ParameterFormat>> formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void append_times(std::vector<compute::LayerTime>&) const override;

  compute::MethodChoice* choice() override { return this; }
  std::string methods() const override { return to_text(methods_); }
  bool is_word(std::string_view word) const override { return methods_of(word).has_value(); }
  void use_methods(std::string_view) override;
  bool trying() const override { return trials_ && trials_->running(); }
  void try_again() override;

 private:
  void make_candidates(const Planning&, const std::vector<ConvolutionMethod>&);
  /// Whether forward pools what it computes without storing it.
  bool pools_in_forward() const;
  bool has(ConvolutionMethod) const;
  std::optional<PiecewiseConvolution>& piecewise(ConvolutionMethod);
  void split_images_once(double& seconds);
  void forward_by(ConvolutionMethod, const Execution&);
  void backward_by(ConvolutionMethod, const Execution&, bool weights, bool data);
  /// What follows once these images are convolved.
  void finish(const Execution&, const Range& images);
  void pass_sums_gradient_on(const Execution&);

  void take(ConvolutionMethods);
  bool is_trial(const Execution&) const;
  MethodTimes spent() const;
  void end_trial();
  std::string describe(Direction) const;

  const DnnlContext& dnnl_;
  ConvolutionPlace place_;
  ConvolutionMethods methods_;
  bool forward_stays_ = false;  ///< with the method that the rule gave it
  std::optional<SkippingConvolution> skipping_;
  std::optional<TileConvolution> tiles_;
  std::optional<PiecewiseConvolution> direct_, winograd_, bf16_;
  std::optional<PooledWinograd> pooled_winograd_;  ///< takes forward from winograd_
  dnnl::memory::desc kernel_layout_;
  std::optional<MethodTrials> trials_;  ///< where there is a choice that is to be measured
  MethodTimes before_trial_;

  MapListener *value_listener_ = nullptr, *gradient_listener_ = nullptr;
  const std::byte* added_value_ = nullptr;
  std::byte* added_diff_ = nullptr;  ///< null where it lies where dst's does, or is not wanted
  std::byte *dst_value_ = nullptr, *dst_diff_ = nullptr;

  float* src_value_ = nullptr;
  SkippingConvolution::Images images_;  ///< those of the last forward pass
  bool split_ = false;                  ///< src_value_ has their planes
  ConvolutionTimes times_;
};

}  // namespace cputrain::cpu
