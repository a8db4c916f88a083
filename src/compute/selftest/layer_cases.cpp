#include "compute/selftest/cases.h"

#include <fmt/format.h>

#include <algorithm>

namespace cputrain::selftest {
namespace {

using compute::CaseNumbers;
using model::Padding;
using Layers = std::vector<model::Layer>;

struct Sizes {
  Shape image;
  int channels;  ///< in the map that the layer reads
  int filters;
};

/// Sides that no tile divides; channels with and without a rest behind blocks of 8 or 16.
Sizes draw_sizes(CaseNumbers& numbers) {
  const int height = numbers.odd_between(9, 15), width = numbers.between(7, 14);
  return {{height, width, 3}, numbers.between(5, 34), numbers.between(5, 40)};
}

/// Whole blocks of 16 channels and many tiles of 4 x 4: where Winograd's algorithm and kernels that
/// skip zeros are for.
Sizes draw_blocks(CaseNumbers& numbers) {
  const int height = numbers.odd_between(17, 21), width = numbers.between(17, 20);
  return {{height, width, 3}, 16 * numbers.between(1, 2), 16 * numbers.between(1, 2)};
}

bool has_kinks(const model::Layer& layer) { return model::facts_of(layer).has_kinks; }

/// Bytes from 0 to 7 are exact eighths; or, where numbers beyond 6 are wanted, such pairs.
model::Input input_of(bool exact, bool large = false) {
  if (!exact) return {};
  return large ? model::Input{2, 0} : model::Input{0.125f, 0};
}

void close(model::Graph& graph, int classes, float smoothing) {
  graph.add(model::Flatten{});
  graph.add(model::Dense{classes == 2 ? 1 : classes});
  if (classes == 2) {
    graph.add(model::SigmoidCrossEntropy{smoothing});
  } else {
    graph.add(model::SoftmaxCrossEntropy{smoothing});
  }
}

LayerCase case_of(const std::string& name, const Shape& image, const Layers& layers,
                  int classes = 3, float smoothing = 0) {
  const bool exact = std::ranges::any_of(layers, has_kinks);
  const auto capped = [](const auto& l) { return std::holds_alternative<model::Relu6>(l); };
  model::Graph graph(image, input_of(exact, std::ranges::any_of(layers, capped)));
  for (const model::Layer& layer : layers) graph.add(layer);
  close(graph, classes, smoothing);
  return {.name = name, .graph = std::move(graph), .exact = exact};
}

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : seed_(seed) {}

  /// `layers`(sizes) stand behind a convolution of the image's pixels that makes their map.
  template <class Make>
  void behind_pixels(const std::string& name, const Make& layers,
                     Sizes (*draw)(CaseNumbers&) = draw_sizes) {
    const Sizes sizes = drawn(name, draw);
    Layers all{model::Convolution{.filters = sizes.channels, .kernel = 1}};
    for (const model::Layer& layer : layers(sizes)) all.push_back(layer);
    add(case_of(name, sizes.image, all), sizes.channels);
  }
  /// They read the pixels themselves.
  template <class Make>
  void of_pixels(const std::string& name, const Make& layers,
                 Sizes (*draw)(CaseNumbers&) = draw_sizes) {
    const Sizes sizes = drawn(name, draw);
    add(case_of(name, sizes.image, layers(sizes)), 3);
  }
  void loss(const std::string& name, int classes, float smoothing, bool mixes = false) {
    const Sizes sizes = drawn(name);
    const Layers layers{model::Convolution{.filters = sizes.channels, .kernel = 1},
                        model::GlobalAveragePool{}};
    cases_.push_back(case_of(name, sizes.image, layers, classes, smoothing));
    cases_.back().mixes = mixes;
  }
  /// Its name gets the map that the layer reads.
  void add(LayerCase made, int channels) {
    const Shape image = made.graph.image();
    made.name += fmt::format(": {} x {} x {}", image.height, image.width, channels);
    cases_.push_back(std::move(made));
  }

  Sizes drawn(const std::string& name, Sizes (*draw)(CaseNumbers&) = draw_sizes) const {
    CaseNumbers numbers(seed_, name);
    return draw(numbers);
  }
  std::vector<LayerCase> take() { return std::move(cases_); }

 private:
  std::uint64_t seed_;
  std::vector<LayerCase> cases_;
};

std::string window_name(const std::string& what, int size, int stride, Padding padding) {
  return fmt::format("{} {}x{}, stride {}, {}", what, size, size, stride, word_of(padding));
}

struct Window {
  int size, stride;
  Padding padding;
};

void add_convolutions(Drawing& drawing) {
  using enum Padding;
  for (const Window& w :
       {Window{1, 1, same}, Window{1, 2, valid}, Window{2, 1, same}, Window{3, 1, valid},
        Window{3, 1, same}, Window{3, 2, same}, Window{3, 3, valid}, Window{5, 1, valid},
        Window{5, 2, same}, Window{7, 1, same}, Window{7, 2, valid}, Window{3, 2, half},
        Window{7, 2, half}}) {
    drawing.behind_pixels(
        window_name("convolution", w.size, w.stride, w.padding), [&](const Sizes& sizes) {
          return Layers{model::Convolution{sizes.filters, w.size, w.stride, w.padding}};
        });
  }
  for (const Window& w : {Window{3, 1, valid}, Window{5, 2, same}, Window{7, 2, same}}) {
    drawing.of_pixels(
        window_name("convolution of pixels", w.size, w.stride, w.padding), [&](const Sizes& sizes) {
          return Layers{model::Convolution{sizes.filters, w.size, w.stride, w.padding}};
        });
  }
  drawing.behind_pixels("convolution without a bias", [](const Sizes& sizes) {
    return Layers{model::Convolution{sizes.filters, 3, 1, same, false}};
  });
  drawing.behind_pixels("convolution with one filter", [](const Sizes&) {
    return Layers{model::Convolution{1, 3, 1, same}};
  });
}

void add_pools(Drawing& drawing) {
  using enum Padding;
  for (const Window& w : {Window{2, 2, valid}, Window{2, 2, same}, Window{3, 1, same},
                          Window{3, 2, same}, Window{3, 2, half}}) {
    drawing.behind_pixels(window_name("max pool", w.size, w.stride, w.padding), [&](const Sizes&) {
      return Layers{model::MaxPool{w.size, w.stride, w.padding}};
    });
    drawing.behind_pixels(window_name("average pool", w.size, w.stride, w.padding),
                          [&](const Sizes&) {
                            return Layers{model::AveragePool{w.size, w.stride, w.padding}};
                          });
  }
  drawing.behind_pixels("global average pool",
                        [](const Sizes&) { return Layers{model::GlobalAveragePool{}}; });
}

/// Filters and channels are those of all groups together.
void add_groups(Drawing& drawing) {
  using enum Padding;
  const auto add = [&](const std::string& what, int channels, int filters, int groups,
                       const Window& w) {
    const std::string name = window_name(what, w.size, w.stride, w.padding);
    const Layers layers{model::Convolution{.filters = channels, .kernel = 1},
                        model::Convolution{.filters = filters,
                                           .kernel = w.size,
                                           .stride = w.stride,
                                           .padding = w.padding,
                                           .groups = groups}};
    drawing.add(case_of(name, drawing.drawn(name).image, layers), channels);
  };
  for (const Window& w : {Window{3, 1, same}, Window{3, 2, half}, Window{5, 2, same},
                          Window{5, 1, valid}, Window{3, 2, valid}}) {
    add("depthwise convolution", 32, 32, 32, w);
  }
  add("depthwise convolution of odd channels", 21, 21, 21, {3, 1, same});
  add("depthwise convolution, two filters a channel", 16, 32, 16, {3, 2, half});
  add("convolution in groups", 32, 32, 2, {3, 1, same});
  add("convolution in groups of odd channels", 15, 9, 3, {3, 2, half});
}

void add_dense(Drawing& drawing) {
  drawing.behind_pixels("dense", [](const Sizes& sizes) {
    return Layers{model::Flatten{}, model::Dense{sizes.filters}};
  });
  drawing.behind_pixels("dense without a bias", [](const Sizes& sizes) {
    return Layers{model::Flatten{}, model::Dense{sizes.filters, false}};
  });
  drawing.of_pixels("dense of pixels, relu", [](const Sizes& sizes) {
    return Layers{model::Flatten{}, model::Dense{sizes.filters}, model::Relu{}};
  });
}

void add_pointwise(Drawing& drawing) {
  using enum Padding;
  drawing.behind_pixels("relu", [](const Sizes&) { return Layers{model::Relu{}}; });
  drawing.behind_pixels("relu6", [](const Sizes&) { return Layers{model::Relu6{}}; });
  drawing.behind_pixels("relu6, dropout", [](const Sizes&) {
    return Layers{model::Relu6{}, model::Dropout{0.3f}};
  });
  drawing.behind_pixels("leaky_relu", [](const Sizes&) { return Layers{model::LeakyRelu{0.25f}}; });
  drawing.behind_pixels("silu", [](const Sizes&) { return Layers{model::Silu{}}; });
  drawing.behind_pixels("layer norm", [](const Sizes&) { return Layers{model::LayerNorm{}}; });
  drawing.behind_pixels("layer norm of a vector, without an offset", [](const Sizes& sizes) {
    return Layers{model::Flatten{}, model::Dense{sizes.filters},
                  model::LayerNorm{.epsilon = 1e-5f, .offset = false}};
  });
  drawing.behind_pixels("dropout", [](const Sizes&) { return Layers{model::Dropout{0.3f}}; });
  drawing.behind_pixels("dropout of a vector", [](const Sizes&) {
    return Layers{model::Flatten{}, model::Dropout{0.5f}};
  });
  drawing.behind_pixels("zero padding, convolution", [](const Sizes& sizes) {
    return Layers{model::ZeroPad{1, 2, 0, 3}, model::Convolution{sizes.filters, 3}};
  });
  drawing.behind_pixels("zero padding, max pool", [](const Sizes&) {
    return Layers{model::ZeroPad{1, 1, 1, 1}, model::MaxPool{3, 2}};
  });
}

void add_whole_blocks(Drawing& drawing) {
  for (const Padding padding : {Padding::same, Padding::valid}) {
    drawing.behind_pixels(
        window_name("convolution of whole blocks", 3, 1, padding),
        [&](const Sizes& sizes) {
          return Layers{model::Convolution{sizes.filters, 3, 1, padding}};
        },
        draw_blocks);
  }
  const auto with_pool = [](const Sizes& sizes) {
    return Layers{model::Convolution{sizes.filters, 3}, model::Relu{}, model::MaxPool{}};
  };
  drawing.behind_pixels("convolution of whole blocks, relu, max pool", with_pool, draw_blocks);
  drawing.of_pixels("convolution of pixels to whole blocks, relu, max pool", with_pool,
                    draw_blocks);
}

/// Layers that backends compute as one, or in another order.
void add_chains(Drawing& drawing) {
  using enum Padding;
  drawing.behind_pixels("convolution, relu, max pool, convolution", [](const Sizes& sizes) {
    return Layers{model::Convolution{sizes.filters, 3, 1, same}, model::Relu{}, model::MaxPool{},
                  model::Convolution{7, 3, 1, same}};
  });
  drawing.of_pixels("convolution of pixels, relu, max pool", [](const Sizes& sizes) {
    return Layers{model::Convolution{sizes.filters, 3}, model::Relu{}, model::MaxPool{}};
  });
  drawing.behind_pixels("convolution, relu, dropout, convolution", [](const Sizes& sizes) {
    return Layers{model::Convolution{sizes.filters, 3, 2, same}, model::Relu{},
                  model::Dropout{0.25f}, model::Convolution{9, 3}};
  });
}

/// Statistics are of all images of a step: one micro-batch.
void add_batch_norms(Drawing& drawing) {
  const auto add = [&](const std::string& name, const Layers& layers) {
    const Sizes sizes = drawing.drawn(name);
    // Without a bias, whose gradient behind a batch norm is nothing but rounding.
    Layers all{model::Convolution{.filters = sizes.channels, .kernel = 1, .bias = false}};
    all.insert(all.end(), layers.begin(), layers.end());
    LayerCase made = case_of(name, sizes.image, all);
    made.pieces = {5};
    drawing.add(std::move(made), sizes.channels);
  };
  add("batch norm", {model::BatchNorm{}});
  add("batch norm, relu, convolution",
      {model::BatchNorm{1e-3f, 0.9f}, model::Relu{}, model::Convolution{8, 3}});
}

/// Two branches of one map, and their sum.
void add_branches(Drawing& drawing) {
  const std::string name = "branches that are added, relu";
  const Sizes sizes = drawing.drawn(name);
  model::Graph graph(sizes.image, input_of(true));
  const int map = graph.add(model::Convolution{.filters = sizes.channels, .kernel = 1});
  const int branch = graph.add(model::Convolution{sizes.channels, 3, 1, Padding::same});
  graph.add(model::Add{}, {}, {map, branch});
  graph.add(model::Relu{});
  close(graph, 3, 0);
  drawing.add({.name = name, .graph = std::move(graph), .exact = true}, sizes.channels);
}

/// A map, two made of it and the map again, one behind the other, so that none begins with a block.
void add_concat(Drawing& drawing, const std::string& name, int channels, int filters) {
  model::Graph graph(drawing.drawn(name).image, input_of(false));
  const int map = graph.add(model::Convolution{.filters = channels, .kernel = 1});
  const int first = graph.add(model::Convolution{filters, 3, 1, Padding::same});
  const int second = graph.add(model::Convolution{filters, 1}, {}, {map});
  graph.add(model::Concat{}, {}, {map, first, second, map});
  graph.add(model::Convolution{5, 1});
  close(graph, 3, 0);
  drawing.add({.name = name, .graph = std::move(graph)}, channels);
}

void add_concats(Drawing& drawing) {
  add_concat(drawing, "maps of whole blocks, concatenated", 32, 16);
  add_concat(drawing, "maps of odd channels, concatenated", 21, 7);
}

}  // namespace

std::vector<LayerCase> layer_cases(std::uint64_t seed) {
  Drawing drawing(seed);
  add_convolutions(drawing);
  add_groups(drawing);
  add_pools(drawing);
  add_dense(drawing);
  add_pointwise(drawing);
  add_whole_blocks(drawing);
  add_chains(drawing);
  add_batch_norms(drawing);
  add_branches(drawing);
  add_concats(drawing);
  drawing.loss("sigmoid cross-entropy", 2, 0);
  drawing.loss("softmax cross-entropy of 10 classes", 10, 0);
  drawing.loss("softmax cross-entropy of 5 classes, smoothed", 5, 0.1f);
  drawing.loss("sigmoid cross-entropy of mixed labels, smoothed", 2, 0.1f, true);
  drawing.loss("softmax cross-entropy of mixed labels", 7, 0, true);
  return drawing.take();
}

}  // namespace cputrain::selftest
