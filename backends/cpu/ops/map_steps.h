#pragma once

#include <vector>

#include "backends/cpu/ops/step.h"

/// Steps that only move or add up maps.
namespace cputrain::cpu {

/// dst = sum of the sources; of one source, a copy. A source whose gradient shares its memory with
/// dst's has it already.
class AddStep final : public Step {
 public:
  struct Part {
    Source src;
    bool shares_diff = false;
  };
  AddStep(const Planning&, int step, std::string name, std::vector<Part>, const Map& dst);

  std::vector<std::unique_ptr<ParameterFormat>> formats() const override { return {}; }
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void append_times(std::vector<compute::LayerTime>& times) const override {
    times.push_back(time_);
  }

 private:
  std::vector<Part> parts_;
  Map dst_;
  std::vector<const float*> src_data_;
  std::vector<float*> src_diff_;  ///< null where there is nothing to write
  float *dst_data_ = nullptr, *dst_diff_ = nullptr;
  compute::LayerTime time_;
};

/// Zeros around a map, for readers that cannot pad by themselves.
class PadStep final : public Step {
 public:
  PadStep(const Planning&, int step, const model::Graph::Node&, const Source& src, const Map& dst);

  std::vector<std::unique_ptr<ParameterFormat>> formats() const override { return {}; }
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void append_times(std::vector<compute::LayerTime>& times) const override {
    times.push_back(time_);
  }

 private:
  template <class F>
  void for_rows(const Execution&, const F&) const;

  model::ZeroPad pad_;
  Source src_;
  Map dst_;
  float *src_data_ = nullptr, *src_diff_ = nullptr, *dst_data_ = nullptr, *dst_diff_ = nullptr;
  compute::LayerTime time_;
};

}  // namespace cputrain::cpu
