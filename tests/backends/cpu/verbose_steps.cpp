#include <cstdio>

#include "backends/cpu/cpu_backend.h"
#include "tests/backends/trial.h"
#include "zoo/zoo.h"

/// Runs two training steps of each of two networks on the cpu backend and marks where steps begin
/// and end, for a parent that reads what the library says about itself (ONEDNN_VERBOSE=1).
namespace {

using namespace cputrain;

model::Graph without_pools(Shape image) {
  return testing::graph_of(
      image, model::Convolution{.filters = 32, .kernel = 3}, model::Relu{},
      model::Convolution{.filters = 64, .kernel = 3, .padding = model::Padding::same},
      model::Relu{}, model::Convolution{.filters = 32, .kernel = 3, .stride = 2},
      model::GlobalAveragePool{}, model::Dense{1}, model::SigmoidCrossEntropy{});
}

void run(const model::Graph& graph, bool winograd) {
  const auto backend = cpu::make_cpu_backend(1, {.winograd = winograd, .skip_zeros = true});
  testing::Trial trial(*backend, graph, {3, 2});
  const auto made = testing::make_images(5, graph.image(), 2);
  const std::vector<const std::uint8_t*> images{made.images[0].data(), made.images[1].data(),
                                                made.images[2].data()};
  const std::span labels(made.labels);
  const std::span samples(made.samples);
  std::puts("steps begin");
  for (std::size_t step = 0; step < 2; ++step) {
    for (const std::size_t count : {3, 2}) {
      trial.program().forward(
          {std::span(images).first(count), labels.first(count), samples.first(count)},
          {compute::Phase::train, 1, step});
      trial.program().backward(
          {1, count == 3 ? compute::Accumulate::overwrite : compute::Accumulate::add});
    }
  }
  std::puts("steps end");
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const Shape image{64, 64, 3};
  for (const bool winograd : {false, true}) {
    run(zoo::find_model("dogcat")->build(image, 2), winograd);
    run(without_pools(image), winograd);
  }
}
