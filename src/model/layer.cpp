#include "model/layer.h"

#include <algorithm>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::model {
namespace {

/// Outputs along one axis; at least 1, else Error(usage).
int windows(const char* what, Padding padding, int n, int kernel, int stride) {
  if (padding == Padding::same) return (n + stride - 1) / stride;
  const auto [before, after] = pad_amount(padding, n, kernel, stride);
  const int padded = n + before + after;
  if (padded < kernel) {
    fail(ExitCode::usage, std::string("a ") + what + " of size " + std::to_string(kernel) +
                              " does not fit an input of " + std::to_string(n) +
                              " (nothing would be left of the image); use a larger --image-size");
  }
  return (padded - kernel) / stride + 1;
}

Shape window_shape(const char* what, Padding padding, const Shape& src, int kernel, int stride,
                   int channels) {
  return {windows(what, padding, src.height, kernel, stride),
          windows(what, padding, src.width, kernel, stride), channels};
}

/// A layer reads one input, unless it joins several.
void check_inputs(const Layer& layer, std::span<const Shape> src) {
  if (!joins(layer)) {
    if (src.size() != 1) {
      fail(ExitCode::usage, "a layer of type " + std::string(type_name(layer)) +
                                " reads one layer, not " + std::to_string(src.size()));
    }
    return;
  }
  const std::string name(type_name(layer));
  if (src.size() < 2) fail(ExitCode::usage, name + " reads two or more layers");
  for (const Shape& other : src) {
    const bool fits = std::holds_alternative<Add>(layer)
                          ? other == src.front()
                          : other.height == src.front().height && other.width == src.front().width;
    if (fits) continue;
    fail(ExitCode::usage, name + " reads layers of different " +
                              (std::holds_alternative<Add>(layer) ? "shapes, " : "sides, ") +
                              shape_text(src.front()) + " and " + shape_text(other));
  }
}

void check_groups(const Convolution& l, const Shape& src) {
  if (src.channels % l.groups == 0 && l.filters % l.groups == 0) return;
  fail(ExitCode::usage, "a convolution in " + std::to_string(l.groups) + " groups cannot deal " +
                            std::to_string(src.channels) + " channels and " +
                            std::to_string(l.filters) + " filters evenly; groups must divide both");
}

/// Numbers of a flattened map, as an extent.
int flat_size(std::size_t features) {
  if (features > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    fail(ExitCode::usage, std::to_string(features) +
                              " features are too many for one layer; use a "
                              "smaller --image-size");
  }
  return static_cast<int>(features);
}

/// Channels of all maps together.
int all_channels(std::span<const Shape> src) {
  std::size_t channels = 0;
  for (const Shape& shape : src) channels += static_cast<std::size_t>(shape.channels);
  return flat_size(channels);
}

}  // namespace

std::size_t ParameterSpec::size() const {
  std::size_t count = 1;
  for (const int extent : extents) count *= static_cast<std::size_t>(extent);
  return count;
}

std::string_view type_name(const Layer& layer) {
  return std::visit(Overloaded{
                        [](const Input&) { return "input"; },
                        [](const Convolution&) { return "convolution"; },
                        [](const ZeroPad&) { return "zero_pad"; },
                        [](const MaxPool&) { return "max_pool"; },
                        [](const AveragePool&) { return "average_pool"; },
                        [](const GlobalAveragePool&) { return "global_average_pool"; },
                        [](const Dense&) { return "dense"; },
                        [](const BatchNorm&) { return "batch_norm"; },
                        [](const Add&) { return "add"; },
                        [](const Concat&) { return "concat"; },
                        [](const Relu&) { return "relu"; },
                        [](const Relu6&) { return "relu6"; },
                        [](const Silu&) { return "silu"; },
                        [](const Dropout&) { return "dropout"; },
                        [](const Flatten&) { return "flatten"; },
                        [](const SigmoidCrossEntropy&) { return "sigmoid"; },
                        [](const SoftmaxCrossEntropy&) { return "softmax"; },
                    },
                    layer);
}

Shape output_shape(const Layer& layer, std::span<const Shape> inputs) {
  check_inputs(layer, inputs);
  const Shape& src = inputs.front();
  return std::visit(
      Overloaded{
          [&](const Convolution& l) {
            check_groups(l, src);
            return window_shape("convolution", l.padding, src, l.kernel, l.stride, l.filters);
          },
          [&](const ZeroPad& l) {
            return Shape{src.height + l.top + l.bottom, src.width + l.left + l.right, src.channels};
          },
          [&](const MaxPool& l) {
            return window_shape("max pool", l.padding, src, l.size, l.stride, src.channels);
          },
          [&](const AveragePool& l) {
            return window_shape("average pool", l.padding, src, l.size, l.stride, src.channels);
          },
          [&](const GlobalAveragePool&) {
            return Shape{1, 1, src.channels};
          },
          [&](const Dense& l) {
            return Shape{1, 1, l.units};
          },
          [&](const Flatten&) {
            return Shape{1, 1, flat_size(src.size())};
          },
          [&](const Concat&) {
            return Shape{src.height, src.width, all_channels(inputs)};
          },
          [&](const auto&) { return src; },
      },
      layer);
}

std::vector<ParameterSpec> parameters(const Layer& layer, const Shape& src) {
  const auto with_bias = [](std::vector<int> kernel, float l2, bool bias) {
    std::vector<ParameterSpec> specs;
    const int outputs = kernel.back();
    specs.push_back({.name = "kernel", .extents = std::move(kernel), .decays = true, .l2 = l2});
    if (bias) specs.push_back({.name = "bias", .extents = {outputs}});
    return specs;
  };
  if (const auto* l = std::get_if<Convolution>(&layer)) {
    const int inputs = src.channels / l->groups;
    return with_bias({l->kernel, l->kernel, inputs, l->filters}, l->l2, l->bias);
  }
  if (const auto* l = std::get_if<Dense>(&layer)) {
    auto specs = with_bias({flat_size(src.size()), l->units}, l->l2, l->bias);
    specs.front().sharded = l->sharded;
    return specs;
  }
  if (std::holds_alternative<BatchNorm>(layer)) {
    const std::vector<int> channels{src.channels};
    return {{.name = "gamma", .extents = channels, .fill = 1},
            {.name = "beta", .extents = channels},
            {.name = "moving_mean", .extents = channels, .learnt = false, .averaged = true},
            {.name = "moving_variance",
             .extents = channels,
             .learnt = false,
             .averaged = true,
             .fill = 1}};
  }
  return {};
}

double macs(const Layer& layer, const Shape& src) {
  if (const auto* l = std::get_if<Convolution>(&layer)) {
    return static_cast<double>(output_shape(layer, src).size()) * l->kernel * l->kernel *
           (src.channels / l->groups);
  }
  if (const auto* l = std::get_if<Dense>(&layer)) {
    return static_cast<double>(src.size()) * l->units;
  }
  return 0;
}

PadAmount pad_amount(Padding padding, int n, int kernel, int stride) {
  if (padding == Padding::valid) return {0, 0};
  if (padding == Padding::half) return {kernel / 2, kernel / 2};
  const int outputs = (n + stride - 1) / stride;
  const int total = std::max((outputs - 1) * stride + kernel - n, 0);
  return {total / 2, total - total / 2};
}

}  // namespace cputrain::model
