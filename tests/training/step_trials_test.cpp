// Steps that `bench step` measures on a device are those of training.
#include "scaling/bench/steps.h"

#include <gtest/gtest.h>

#include <fstream>

#include "backends/cuda/backend.h"
#include "composition/services.h"
#include "emulated/counts.h"
#include "tests/support/temporary_folder.h"
#include "training/request/choose_training.h"

namespace cputrain::bench {
namespace {

using emulated::Counts;

constexpr const char* kNetwork = R"({"format": "cputrain model 1", "name": "small",
  "recipe": {"image_size": 16, "batch": 9, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.01},
  "layers": [{"type": "convolution", "filters": 4, "kernel": 3}, {"type": "relu"}, {"type": "flatten"},
             {"type": "dense", "units": "classes"}, {"type": "softmax"}]})";

class StepTrials : public ::testing::Test {
 protected:
  StepTrials() : services_(composition::make_services(launcher_, signals_)) {
    services_.make_backend = [](const training::BackendRequest&) {
      return cuda::make_device_backend();
    };
    const std::filesystem::path network = folder_.path() / "small.json";
    std::ofstream(network) << kNetwork;
    flags_.model = network;
    flags_.data = "synthetic:10";
    flags_.validation_split = 0.1;
    flags_.micro_batch = 9;  // of all images: a step is one graph
    flags_.threads = 1;
    flags_.verbose = 0;
  }

  /// What some work asks of the device.
  template <class Work>
  static Counts counted(const Work& work) {
    const Counts before = emulated::counts();
    work();
    return difference(emulated::counts(), before);
  }

  system::SignalWatch signals_;
  placement::Launcher launcher_;  // nobody's
  training::Services services_;
  training::TrainingFlags flags_;
  testing::TemporaryFolder folder_;
};

TEST_F(StepTrials, AreGraphsAndLayersAreTimedAfterThem) {
  constexpr int kSteps = 4, kLayerSteps = 2;
  const training::Session session = training::start_session(flags_, services_);
  const training::TrainingSpec spec = training::choose_training(flags_);
  data::DataSource found = services_.data.open(flags_.data_request(spec.seed));
  found.validation.clear();
  const auto source = std::make_shared<const data::DataSource>(std::move(found));
  const auto data = std::make_shared<const data::DecodedData>(
      services_.data.decode(*source, {spec.image}, session.communicator->node_memory()));
  StepTrial trial(session, training::plan_training(session, spec, 2), source, data);
  ASSERT_EQ(trial.plan().steps(), 1u);
  trial.warm_up();
  const Counts steps = counted([&] {
    for (int i = 0; i < kSteps; ++i) trial.measure();
  });
  EXPECT_EQ(steps.graphs, std::uint64_t{kSteps});
  EXPECT_EQ(steps.timed_events, 0u);
  EXPECT_EQ(trial.images_per_second().size(), std::size_t{kSteps});

  std::vector<compute::LayerTime> layers;
  const Counts timed = counted([&] { layers = trial.measure_layers(kLayerSteps); });
  EXPECT_EQ(timed.graphs, 0u);
  EXPECT_EQ(timed.timed_events, 2u * (5 + 5) * kLayerSteps);  // around five ways each way
  for (const compute::LayerTime& layer : layers) EXPECT_GT(layer.forward, 0) << layer.name;
  EXPECT_EQ(counted([&] { trial.measure(); }).graphs, 1u);
}

}  // namespace
}  // namespace cputrain::bench
