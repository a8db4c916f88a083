#include "tests/backends/layer_cases.h"

#include <cmath>
#include <map>
#include <tuple>

namespace cputrain::testing {
namespace {

std::vector<model::Layer> behind(int filters, std::vector<model::Layer> layers) {
  layers.insert(layers.begin(), model::Convolution{.filters = filters, .kernel = 3});
  return layers;
}

/// Without a bias, whose gradient behind a batch norm is nothing but rounding.
std::vector<model::Layer> behind_bare(int filters, std::vector<model::Layer> layers) {
  layers.insert(layers.begin(), model::Convolution{.filters = filters, .kernel = 3, .bias = false});
  return layers;
}

model::Convolution same(int filters, int kernel, int stride = 1, bool bias = true) {
  return {filters, kernel, stride, model::Padding::same, bias};
}
model::Convolution valid(int filters, int kernel, int stride = 1, bool bias = true) {
  return {filters, kernel, stride, model::Padding::valid, bias};
}

model::Convolution grouped(int filters, int groups, int kernel, int stride = 1,
                           model::Padding padding = model::Padding::half) {
  return {
      .filters = filters, .kernel = kernel, .stride = stride, .padding = padding, .groups = groups};
}

}  // namespace

std::vector<LayerCase> layer_cases() {
  const Shape small{11, 13, 3}, square{18, 18, 3};
  return {
      {"conv_of_pixels", small, {valid(16, 3)}},
      {"conv_of_pixels_same_stride2", small, {same(16, 3, 2)}},
      {"conv_of_pixels_5x5_odd_filters", small, {same(5, 5)}},
      {"conv_of_pixels_7x7_stride2", {29, 31, 3}, {valid(32, 7, 2)}},
      {"conv_1x1_of_pixels", small, {valid(16, 1)}},
      {"conv_valid", small, behind(16, {valid(32, 3)})},
      {"conv_same", small, behind(16, {same(32, 3)})},
      {"conv_same_stride2", small, behind(16, {same(16, 3, 2)})},
      {"conv_1x1", small, behind(16, {same(48, 1)})},
      {"conv_1x1_stride2", small, behind(32, {valid(16, 1, 2)})},
      {"conv_odd_channels", small, behind(20, {same(7, 3)})},
      {"conv_one_filter", small, behind(16, {valid(1, 3)})},
      {"conv_no_bias", small, behind(16, {valid(16, 3, 1, false)})},
      {"conv_of_four_pixels", {4, 4, 3}, {valid(16, 3), same(32, 3), same(16, 3)}},
      {"conv_of_one_pixel", {3, 3, 3}, {valid(16, 3), model::Relu{}, same(32, 3), same(16, 3)}},
      {"conv_13x13_of_small_maps", {6, 6, 3}, behind(16, {same(32, 13), model::MaxPool{}})},
      {"conv_13x13_odd_channels", {6, 6, 3}, behind(10, {same(7, 13)})},
      {"conv_half_stride2", small,
       behind(16, {{model::Convolution{16, 3, 2, model::Padding::half}}})},
      {"depthwise", small, behind(32, {grouped(32, 32, 3)})},
      {"depthwise_5x5_stride2", small, behind(48, {grouped(48, 48, 5, 2, model::Padding::same)})},
      {"depthwise_behind_zeros", square,
       behind(32, {model::ZeroPad{0, 1, 0, 1}, grouped(32, 32, 3, 2, model::Padding::valid)})},
      {"depthwise_odd_channels", small, behind(21, {grouped(21, 21, 3)})},
      {"depthwise_two_filters", small, behind(16, {grouped(32, 16, 3)})},
      {"depthwise_of_pixels", small, {grouped(3, 3, 3)}},
      {"depthwise_pool_relu", square,
       behind(32, {grouped(32, 32, 3), model::Relu{}, model::MaxPool{}})},
      {"depthwise_batch_norm_relu6", square,
       behind_bare(32, {model::BatchNorm{1e-5f, 0.9f}, model::Relu6{},
                        model::Convolution{.filters = 32,
                                           .kernel = 3,
                                           .padding = model::Padding::half,
                                           .bias = false,
                                           .groups = 32},
                        model::BatchNorm{}, model::Relu6{}})},
      {"grouped", small, behind(32, {grouped(48, 2, 3)})},
      {"grouped_1x1_odd", small, behind(15, {grouped(9, 3, 1, 2)})},
      {"conv_relu", square, behind(16, {model::Relu{}, same(32, 3), model::Relu{}})},
      {"conv_relu_dropout", square, behind(16, {model::Relu{}, model::Dropout{0.3f}, same(16, 3)})},
      {"conv_pool_relu", square,
       behind(16, {model::Relu{}, model::MaxPool{}, same(32, 3), model::Relu{}, model::MaxPool{}})},
      {"conv_pool_relu_wide",
       {62, 62, 3},
       behind(32, {model::Relu{}, model::MaxPool{}, valid(64, 3), model::Relu{}, model::MaxPool{},
                   valid(32, 3), model::Relu{}})},
      {"relu_average_pool", square, behind(16, {model::Relu{}, model::AveragePool{}})},
      {"max_pool_odd", small, behind(16, {model::MaxPool{}})},
      {"max_pool_odd_channels", small, behind(9, {model::MaxPool{}, model::Relu{}})},
      {"max_pool_3x3_stride2", small, behind(16, {model::MaxPool{3, 2}})},
      {"max_pool_3x3_stride2_same", small,
       behind(16, {model::MaxPool{3, 2, model::Padding::same}})},
      {"max_pool_3x3_stride2_half", small,
       behind(16, {model::MaxPool{3, 2, model::Padding::half}})},
      {"max_pool_3x3_stride1_same", small,
       behind(16, {model::MaxPool{3, 1, model::Padding::same}})},
      {"max_pool_twice", square, behind(16, {model::MaxPool{}, model::MaxPool{}})},
      {"max_pool_of_pixels", square, {model::MaxPool{}, valid(16, 3)}},
      {"average_pool", small, behind(16, {model::AveragePool{}})},
      {"average_pool_3x3_stride2_same", small,
       behind(24, {model::AveragePool{3, 2, model::Padding::same}})},
      {"average_pool_3x3_half", small,
       behind(24, {model::AveragePool{3, 1, model::Padding::half}})},
      {"average_pool_of_pixels", square, {model::AveragePool{}, valid(16, 3)}},
      {"global_average_pool", small, behind(16, {model::GlobalAveragePool{}})},
      {"global_average_pool_odd", small,
       behind(21, {model::Relu{}, model::GlobalAveragePool{}, model::Dropout{0.5f}})},
      {"zero_pad", small, behind(16, {model::ZeroPad{1, 2, 0, 3}, model::Relu{}})},
      {"zero_pad_of_pixels_conv_7x7", {29, 31, 3}, {model::ZeroPad{3, 3, 3, 3}, valid(16, 7, 2)}},
      {"zero_pad_conv_stride2", square, behind(16, {model::ZeroPad{1, 1, 1, 1}, valid(16, 3, 2)})},
      {"zero_pad_wider_than_the_kernel", small,
       behind(16, {model::ZeroPad{4, 1, 0, 5}, valid(16, 3)})},
      {"zero_pad_max_pool", small, behind(16, {model::ZeroPad{1, 1, 1, 1}, model::MaxPool{3, 2}})},
      {"max_pool_1x1_stride2", small, behind(16, {model::MaxPool{1, 2}})},
      {"batch_norm", small, behind_bare(16, {model::BatchNorm{}})},
      {"batch_norm_relu", square,
       behind_bare(32, {model::BatchNorm{1e-3f, 0.9f}, model::Relu{}, same(16, 3)})},
      {"batch_norm_odd_channels", small, behind_bare(21, {model::BatchNorm{}, model::Relu{}})},
      {"batch_norm_dropout", small,
       behind_bare(16, {model::BatchNorm{}, model::Relu{}, model::Dropout{0.3f}})},
      {"batch_norm_of_pixels", small, {model::BatchNorm{}, same(16, 3)}},
      {"batch_norm_of_vectors",
       small,
       {model::Flatten{}, model::Dense{21, false}, model::BatchNorm{}, model::Relu{}},
       3,
       9},
      {"batch_norm_many_images",
       {9, 9, 3},
       behind_bare(16, {model::BatchNorm{}, model::Relu{}}),
       3,
       19},
      {"batch_norm_large_maps",
       {60, 61, 3},
       behind_bare(16, {model::BatchNorm{}, model::Relu{}, model::MaxPool{}})},
      {"layer_norm", small, behind(16, {model::LayerNorm{}, same(16, 3)})},
      {"layer_norm_odd_channels", small, behind(21, {model::LayerNorm{}, model::Relu{}})},
      {"layer_norm_bare", square, behind(40, {model::LayerNorm{1e-5f, false, false}, same(16, 3)})},
      {"layer_norm_of_pixels", small, {model::LayerNorm{1e-3f, true, false}, same(16, 3)}},
      {"layer_norm_of_vectors", small,
       behind(16, {model::GlobalAveragePool{}, model::Dense{1045},
                   model::LayerNorm{1e-3f, false, true}})},
      {"layer_norm_many_images", {9, 9, 3}, behind(520, {model::LayerNorm{}, same(8, 1)}), 3, 19},
      {"l2_is_the_optimizers", small,
       behind(16, {model::Convolution{.filters = 8, .kernel = 3, .l2 = 1}})},
      {"dense_of_pixels", small, {model::Flatten{}, model::Dense{19}, model::Relu{}}},
      {"dense_chain", small,
       behind(16, {model::Flatten{}, model::Dense{33}, model::Relu{}, model::Dropout{0.5f},
                   model::Dense{5}, model::Relu{}})},
      {"dense_no_bias", small, behind(16, {model::Flatten{}, model::Dense{8, false}})},
      {"dense_one_unit", small, behind(16, {model::Flatten{}, model::Dense{1}})},
      {"dense_of_padded_channels", small,
       behind(10, {model::Relu{}, model::Flatten{}, model::Dense{12}})},
      {"dropout_of_odd_channels", small, behind(7, {model::Dropout{0.4f}})},
      {"dropout_before_relu", small, behind(16, {model::Dropout{0.4f}, model::Relu{}})},
      {"dropout_of_flat", small, behind(11, {model::Flatten{}, model::Dropout{0.25f}})},
      {"relu6", small, behind(16, {model::Dropout{0.9f}, model::Relu6{}, same(16, 3)})},
      {"relu6_dropout", small,
       behind(21, {model::Relu6{}, model::Dropout{0.4f}, same(16, 3), model::Relu6{}})},
      {"leaky_relu", small, behind(16, {model::LeakyRelu{}, same(16, 3), model::LeakyRelu{0.3f}})},
      {"leaky_relu_among_others", small,
       behind(21, {model::Relu6{}, model::LeakyRelu{0.5f}, model::Dropout{0.4f},
                   model::LeakyRelu{0.2f}, model::BatchNorm{}, model::LeakyRelu{0.25f}})},
      {"silu", small, behind(16, {model::Silu{}, same(16, 3), model::Silu{}})},
      {"silu_of_flat", small, behind(11, {model::Flatten{}, model::Silu{}})},
      {"one_logit", small, behind(16, {model::Relu{}}), 2},
      {"ten_classes", small, behind(16, {model::Relu{}}), 10},
      {"image_larger_than_a_cache",
       {300, 310, 3},
       {valid(16, 3), model::Relu{}, model::MaxPool{}, valid(8, 3), model::Relu{},
        model::MaxPool{4, 4}},
       3,
       3,
       true},
      {"one_image", square, behind(16, {model::Relu{}, model::MaxPool{}, same(16, 3)}), 3, 1},
      {"conv_pool", square, behind(16, {same(48, 3), model::MaxPool{}})},
      {"conv_in_pieces", {96, 104, 3}, behind(16, {same(32, 1)}), 3, 5, true},
      {"five_images", square, behind(16, {model::Relu{}, model::MaxPool{}, same(16, 3)}), 3, 5},
  };
}

model::Graph build(const LayerCase& c) {
  model::Graph graph(c.image);
  for (const model::Layer& layer : c.layers) graph.add(layer);
  graph.add(model::Flatten{});
  graph.add(model::Dense{c.classes == 2 ? 1 : c.classes});
  if (c.classes == 2) {
    graph.add(model::SigmoidCrossEntropy{});
  } else {
    graph.add(model::SoftmaxCrossEntropy{});
  }
  return graph;
}

Outcome outcome_on(compute::Backend& backend, const LayerCase& c, std::uint64_t seed, Run run) {
  constexpr std::uint64_t kStep = 4;
  const Samples samples = make_images(c.images, c.image, c.classes, seed);
  Trial trial(backend, build(c), {c.images},
              run == Run::step ? compute::Phase::train : compute::Phase::evaluate);
  return run == Run::step ? trial.train(samples, {c.images}, kStep)
                          : trial.evaluate(samples, {c.images});
}

const Outcome& outcome_in_double(const LayerCase& c, std::uint64_t seed, Run run,
                                 reference::Factors factors) {
  static std::map<std::tuple<std::string, std::uint64_t, Run, reference::Factors>, Outcome> made;
  const auto key = std::tuple(c.name, seed, run, factors);
  if (const auto found = made.find(key); found != made.end()) return found->second;
  const auto reference = reference::make_reference_backend(DType::f64, factors);
  return made.emplace(key, outcome_on(*reference, c, seed, run)).first->second;
}

std::vector<Distance> distances(const LayerCase& c, const Outcome& actual,
                                const Outcome& expected) {
  const auto between = [](const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() ? relative_distance(a, b) : HUGE_VAL;
  };
  const auto numbers = [](const std::vector<float>& p) {
    return std::vector<double>(p.begin(), p.end());
  };
  std::vector<Distance> list{
      {"loss", between({actual.tally.loss}, {expected.tally.loss})},
      {"probabilities", between(numbers(actual.probabilities), numbers(expected.probabilities))}};
  const auto layout = compute::lay_out(build(c), DType::f64);
  for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
    list.push_back(
        {layout.parameters[p].name, between(actual.gradients[p], expected.gradients[p])});
  }
  return list;
}

}  // namespace cputrain::testing
