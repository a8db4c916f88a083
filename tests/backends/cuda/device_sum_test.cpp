// Sums of gradients that a device forms in a stream of its own, behind the backward pass and before
// the update, with nobody on the host waiting: whatever the device does first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cuda/target.h"
#include "backends/cuda/update.h"
#include "comm/solo.h"
#include "compute/executor/executor.h"
#include "emulated/counts.h"
#include "emulated/settings.h"
#include "exchange/exchanges.h"
#include "tests/backends/trial.h"

namespace cputrain::cuda {
namespace {

constexpr int kBatch = 3, kUnits = 5;
constexpr Shape kSmall{6, 6, 3};
constexpr double kScale = 1.0 / kBatch;

model::Graph two_layers_that_learn() {
  model::Graph graph(kSmall);
  graph.add(model::Convolution{4, 3}, "conv");
  graph.add(model::Flatten{});
  graph.add(model::Dense{kUnits}, "dense");
  graph.add(model::SoftmaxCrossEntropy{}, "loss");
  return graph;
}

/// As if another rank had the same gradients.
class TwiceOnDevice final : public exchange::GradientSum {
 public:
  explicit TwiceOnDevice(const ComputeStream& compute) : summed_(compute) {}

  void sum(Range, const Array&) override { FAIL() << "it is to be enqueued"; }
  compute::Event* enqueue(Range, const Array& gradients, compute::Event* after) override {
    dynamic_cast<StreamEvent&>(*after).hold_up(stream_.get());
    auto* values = gradients.as<float>().data();
    sum_arrays(stream_.get(), {{values, values}, 2}, gradients.size, values);
    summed_.record(stream_.get());
    return &summed_;
  }
  double volume(Range range) const override { return static_cast<double>(range.size()); }
  std::size_t memory() const override { return 0; }
  std::string name() const override { return "twice"; }

 private:
  OwnedStream stream_;
  StreamEvent summed_;
};

class DeviceSum : public ::testing::TestWithParam<exchange::Overlap> {
 protected:
  static std::vector<float> read(DeviceMemory& memory, const Array& array) {
    std::vector<float> values(array.size);
    memory.read(array.data, std::as_writable_bytes(std::span(values)));
    return values;
  }

  /// Descends by the summed gradients; what weights differ in from that, at most.
  static float error_of_steps(exchange::Overlap overlap) {
    ComputeStream compute;
    DeviceMemory memory(0, 1, Numbers::exact, compute);
    const auto communicator = comm::make_solo();
    std::unique_ptr<exchange::GradientExchange> exchange;
    compute::Executor program(
        make_target({0, 132, Numbers::exact, compute, memory, true}), two_layers_that_learn(),
        {.micro_batches = {kBatch}}, [&](const compute::ParameterLayout& layout) {
          exchange = exchange::make_replica_exchange({.communicator = *communicator,
                                                      .layout = layout,
                                                      .overlap = overlap,
                                                      .memory = memory},
                                                     std::make_unique<TwiceOnDevice>(compute));
          return exchange->arenas();
        });
    const auto [weights, gradients] = exchange->arenas();
    const testing::Samples samples = testing::make_images(kBatch, kSmall, kUnits);
    std::vector<const std::uint8_t*> images;
    for (const auto& image : samples.images) images.push_back(image.data());
    const auto forward = [&] {
      program.forward({images, samples.labels, samples.samples}, {compute::Phase::train, 1, 0});
    };

    DeviceUpdate update(1, 0, compute, memory,
                        {optim::Sgd{}, {{weights.slice(0, gradients.size), gradients}}});

    float error = 0;
    std::vector<float> expected = read(memory, weights);
    for (int step = 0; step < 2; ++step) {
      forward();
      program.backward({kScale});
      const std::vector<float> own = read(memory, gradients);
      for (std::size_t i = 0; i < own.size(); ++i) expected[i] -= 2 * own[i];

      forward();
      const emulated::Counts before = emulated::counts();
      program.backward({kScale, exchange->begin(0, true),
                        [&](std::size_t n, compute::Event* after) { exchange->ready(n, after); }});
      exchange->finish([&](Range) { update.apply({optim::Sgd{}, 1}); });
      EXPECT_EQ(difference(emulated::counts(), before).waits(), 0u);
      const std::vector<float> now = read(memory, weights);
      for (std::size_t i = 0; i < now.size(); ++i) {
        error = std::max(error, std::abs(now[i] - expected[i]));
      }
      EXPECT_NE(own, std::vector<float>(own.size()));
      expected = now;
    }
    return error;
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, DeviceSum,
                         ::testing::Values(exchange::Overlap::none, exchange::Overlap::thread),
                         [](const auto& test) {
                           return test.param == exchange::Overlap::none ? "Called" : "Overlapped";
                         });

TEST_P(DeviceSum, LiesBetweenBackwardAndTheUpdate) {
  const emulated::Settings before = emulated::settings();
  for (const auto order :
       {emulated::Order::forward, emulated::Order::reverse, emulated::Order::random}) {
    emulated::Settings settings = before;
    settings.order = order;
    emulated::restart(settings);
    EXPECT_LT(error_of_steps(GetParam()), 1e-5f) << static_cast<int>(order);
  }
  emulated::restart(before);
}

}  // namespace
}  // namespace cputrain::cuda
