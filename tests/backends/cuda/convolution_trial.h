#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "backends/cuda/kernels/products/convolution.h"
#include "backends/cuda/selftest/convolution_numbers.h"
#include "compute/selftest_case.h"
#include "tests/backends/cuda/device_arrays.h"

/// A convolution with random maps, weights and gradients, and runs of its kernels.
namespace cputrain::cuda {

using ConvolutionCase = WindowCase;

inline std::ostream& operator<<(std::ostream& out, const ConvolutionCase& c) {
  return out << text_of(c);
}

/// |actual - expected| / |expected|, of the Euclidean norms.
inline double distance(const Floats& actual, const Doubles& expected) {
  return compute::relative_distance(Doubles(actual.begin(), actual.end()), expected);
}

class ConvolutionTrial {
 public:
  /// Random numbers of the format, from `low` to 1.
  explicit ConvolutionTrial(const ConvolutionCase& c, float low = -1,
                            Numbers format = Numbers::exact)
      : format_(format),
        shape_(c.window()),
        channels_(c.channels),
        outputs_(c.outputs),
        numbers_(convolution_numbers(c, [seed = 0u, low, format](std::size_t count) mutable {
          return rounded(format, random_floats(count, ++seed, low));
        })) {}

  /// The same with another src.
  ConvolutionTrial with_src(const Floats& src) const {
    ConvolutionTrial other = *this;
    other.numbers_.src = src;
    return other;
  }

  /// The same with other weights.
  ConvolutionTrial with_weights(const Floats& weights) const {
    ConvolutionTrial other = *this;
    other.numbers_.weights = weights;
    return other;
  }

  const WindowShape& shape() const { return shape_; }
  int channels() const { return channels_; }
  int outputs() const { return outputs_; }
  const Floats& src() const { return numbers_.src; }
  const Floats& weights() const { return numbers_.weights; }
  const Floats& bias() const { return numbers_.bias; }
  const Floats& diff_dst() const { return numbers_.diff_dst; }

  /// dst, where arrays held `before`.
  Floats forward(int multiprocessors, float before, bool with_bias = true) const {
    return forward(plan_convolution(shape_, format_, multiprocessors), before, with_bias);
  }
  /// `moments` become those of dst.
  Floats forward(const ConvolutionPlan& plan, float before, bool with_bias = true,
                 const Floats* added = nullptr, Floats* moments = nullptr) const {
    const Workspace workspace(*this, plan, before);
    const DeviceMap src = map(numbers_.src), weights = map(numbers_.weights);
    const DeviceArray<float> bias(numbers_.bias);
    const std::optional<DeviceMap> other = added ? std::optional(map(*added)) : std::nullopt;
    const DeviceMap dst =
        map(Floats(static_cast<std::size_t>(shape_.images) * shape_.dst.size(), before));
    ChannelSums sums = moments ? moments_of(shape_, plan) : ChannelSums{};
    const DeviceArray<float> parts(Floats(sums.count(), before));
    if (moments) sums.values = parts.data();
    convolution_forward(test_stream().get(), workspace.call, src.data(), weights.data(),
                        with_bias ? bias.data() : nullptr, other ? other->data() : nullptr,
                        dst.data(), sums);
    if (moments) *moments = parts.read();
    return dst.read();
  }

  /// diff_src; `before` is what it held where it is added to, else NaN.
  Floats data(int multiprocessors, float poison, const Floats* before = nullptr) const {
    return data(plan_convolution(shape_, format_, multiprocessors), poison, before);
  }
  /// `slopes` become those of a batch norm with ReLU that read src, by factors().
  Floats data(const ConvolutionPlan& plan, float poison, const Floats* before = nullptr,
              Floats* slopes = nullptr) const {
    const Workspace workspace(*this, plan, poison);
    const DeviceMap diff_dst = map(numbers_.diff_dst), weights = map(numbers_.weights);
    const DeviceMap diff_src = map(before ? *before : Floats(numbers_.src.size(), poison));
    const DeviceMap src = map(numbers_.src);
    const DeviceArray<float> of_norm(factors());
    NormSlopes made;
    made.pass = {shape_.positions(), {of_norm.data(), shape_.src.channels}, true};
    made.src = src.data();
    if (slopes) made.sums = slopes_of(shape_, plan);
    const DeviceArray<float> parts(Floats(made.sums.count(), poison));
    if (slopes) made.sums.values = parts.data();
    convolution_backward_data(test_stream().get(), workspace.call, diff_dst.data(), weights.data(),
                              diff_src.data(), before != nullptr, made);
    if (slopes) *slopes = parts.read();
    return diff_src.read();
  }
  Floats factors() const {
    return random_floats(ChannelFactors::kRows * static_cast<std::size_t>(shape_.src.channels), 11);
  }

  /// diff_weights and diff_bias.
  using Gradients = std::tuple<Floats, Floats>;
  Gradients gradients(int multiprocessors, float poison, const Gradients* before = nullptr) const {
    return gradients(plan_convolution(shape_, format_, multiprocessors), poison, before);
  }
  Gradients gradients(const ConvolutionPlan& plan, float poison,
                      const Gradients* before = nullptr) const {
    const Workspace workspace(*this, plan, poison);
    const DeviceMap src = map(numbers_.src), diff_dst = map(numbers_.diff_dst);
    const DeviceArray<float> diff_weights(before ? std::get<0>(*before)
                                                 : Floats(numbers_.weights.size(), poison));
    const DeviceArray<float> diff_bias(before ? std::get<1>(*before)
                                              : Floats(numbers_.bias.size(), poison));
    convolution_backward_weights(test_stream().get(), workspace.call, src.data(), diff_dst.data(),
                                 diff_weights.data(), diff_bias.data(), before != nullptr);
    return {diff_weights.read(), diff_bias.read()};
  }

 private:
  struct Workspace {
    Workspace(const ConvolutionTrial& of, const ConvolutionPlan& plan, float value)
        : array(Floats(plan.workspace_bytes(of.shape_) / sizeof(float), value)),
          call{of.format_, of.shape_, plan, array.data()} {}
    DeviceArray<float> array;
    ConvolutionCall call;
  };

  DeviceMap map(const Floats& values) const { return {format_, values}; }

  Numbers format_;
  WindowShape shape_;
  int channels_, outputs_;
  ConvolutionNumbers numbers_;
};

/// Cases for all directions: kernels and strides, both paddings (of different sides too), odd maps,
/// padded channels, few rows and few columns, long sums.
inline std::vector<ConvolutionCase> convolution_cases() {
  using enum model::Padding;
  return {{1, 5, 5, 8, 8, 3, 1},
          {3, 11, 13, 24, 40, 3, 1},
          {3, 11, 13, 21, 40, 3, 2},
          {1, 29, 31, 5, 21, 5, 1, valid},
          {1, 31, 29, 3, 32, 7, 2},
          {3, 9, 7, 72, 136, 1, 1},
          {3, 11, 13, 20, 40, 1, 2, valid},
          {2, 11, 13, 16, 7, 2, 1},
          {1, 13, 11, 20, 72, 2, 2, valid},
          {2, 13, 11, 16, 40, 2, 3, valid},
          {1, 17, 16, 8, 40, 3, 3, valid},
          {1, 15, 14, 16, 24, 5, 3},
          {1, 6, 5, 136, 136, 3, 1},
          {5, 1, 1, 200, 24, 1, 1},
          {3, 1, 1, 256, 1, 1, 1},
          {40, 1, 1, 1, 72, 1, 1},
          {70, 2, 3, 40, 64, 1, 1},
          {1, 4, 3, 8, 8, 7, 1},
          {1, 13, 12, 3, 16, 11, 2},
          {1, 5, 4, 8, 8, 17, 1},
          {1, 9, 8, 40, 136, 3, 2},
          {1, 7, 5, 16, 520, 1, 2},
          {3, 12, 14, 72, 40, 3, 2}};
}

}  // namespace cputrain::cuda
