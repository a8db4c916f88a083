#include "backends/cpu/parameter_formats.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/parallel.h"

namespace cputrain::cpu {
namespace {

/// Keras' order of a kernel: height, width, in (of a group), out.
dnnl::memory::desc keras_desc(const model::Convolution& layer, int in) {
  using Tag = dnnl::memory::format_tag;
  return {kernel_dims(in, layer.filters, layer.kernel, layer.groups), dnnl::memory::data_type::f32,
          layer.groups == 1 ? Tag::hwio : Tag::hwigo};
}

class KernelFormat final : public compute::ParameterFormat {
 public:
  KernelFormat(const dnnl::memory::desc& stored, const model::Convolution& layer, int in)
      : context_(make_dnnl_context()),
        stored_(stored),
        keras_(keras_desc(layer, in)),
        grouped_(layer.groups != 1),
        extents_{layer.filters, in, layer.kernel, layer.kernel} {}

  std::size_t stored() const override { return stored_.get_size() / sizeof(float); }
  std::size_t panel() const override {
    if (grouped_) return 0;
    using Tag = dnnl::memory::format_tag;
    constexpr std::pair<Tag, std::size_t> kPanels[] = {
        {Tag::OIhw16i16o, 16}, {Tag::Ohwi16o, 16}, {Tag::OIhw8i8o, 8}, {Tag::Ohwi8o, 8}};
    for (const auto& [tag, width] : kPanels) {
      if (stored_ == dnnl::memory::desc(extents_, dnnl::memory::data_type::f32, tag)) {
        return width;
      }
    }
    return 0;
  }
  void to_canonical(std::span<const float> stored, std::span<float> canonical) const override {
    convert(stored_, stored.data(), keras_, canonical.data());
  }
  void from_canonical(std::span<const float> canonical, std::span<float> stored) const override {
    convert(keras_, canonical.data(), stored_, stored.data());
  }

 private:
  void convert(const dnnl::memory::desc& from, const float* src, const dnnl::memory::desc& to,
               float* dst) const {
    const ThreadCount alone(
        1);  // small work that SIGTERM may ask for on a machine overfull of threads
    const Operation operation = reorder(context_, from, to);
    std::vector<std::byte> scratchpad(operation.scratchpad);
    Call(context_, operation, scratchpad.data(),
         {{DNNL_ARG_FROM, from, const_cast<float*>(src)}, {DNNL_ARG_TO, to, dst}})
        .run();
  }

  DnnlContext context_;
  dnnl::memory::desc stored_, keras_;
  bool grouped_;
  dnnl::memory::dims extents_;
};

class RowsFormat final : public compute::ParameterFormat {
 public:
  RowsFormat(const compute::SampleLayout& src, std::size_t out,
             std::optional<compute::Factors> factors)
      : src_(src), out_(out), factors_(factors) {}

  std::size_t stored() const override { return src_.size() * out_; }
  std::optional<compute::Factors> factors() const override { return factors_; }
  void to_canonical(std::span<const float> stored, std::span<float> canonical) const override {
    for (std::size_t row = 0; row < src_.shape.size(); ++row) {
      std::copy_n(stored.data() + src_.position(row) * out_, out_, canonical.data() + row * out_);
    }
  }
  void from_canonical(std::span<const float> canonical, std::span<float> stored) const override {
    if (src_.padded()) std::ranges::fill(stored, 0.0f);
    for (std::size_t row = 0; row < src_.shape.size(); ++row) {
      std::copy_n(canonical.data() + row * out_, out_, stored.data() + src_.position(row) * out_);
    }
  }

 private:
  compute::SampleLayout src_;
  std::size_t out_;
  std::optional<compute::Factors> factors_;
};

}  // namespace

std::unique_ptr<compute::ParameterFormat> make_kernel_format(const dnnl::memory::desc& stored,
                                                             const model::Convolution& layer,
                                                             int in) {
  return std::make_unique<KernelFormat>(stored, layer, in);
}

std::unique_ptr<compute::ParameterFormat> make_rows_format(
    const compute::SampleLayout& src, std::size_t out, std::optional<compute::Factors> factors) {
  return std::make_unique<RowsFormat>(src, out, factors);
}

std::unique_ptr<compute::ParameterFormat> make_vector_format(std::size_t size) {
  return make_rows_format({{1, 1, 1}, 1}, size);  // one row
}

}  // namespace cputrain::cpu
