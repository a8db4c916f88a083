// What a training asks of a device, as the emulated one counts it.
#include <gtest/gtest.h>

#include "backends/cuda/backend.h"
#include "comm/communicator.h"
#include "emulated/counts.h"
#include "tests/loop/made_training.h"

namespace cputrain::loop {
namespace {

MadeOptions on_device() {
  MadeOptions options;
  options.backend = [] { return cuda::make_device_backend(); };
  options.prefetch = 0;  // a thread that is ahead may have asked for more, or not
  return options;
}

/// What a training takes of the device, and of how many images predictions were ranked.
emulated::Counts counted(const MadeOptions& options, double& ranked) {
  const emulated::Counts before = emulated::counts();
  const MadeResult made = train_made(*comm::make_solo(), options);
  ranked = 0;
  for (const EpochRecord& epoch : made.recorder.epochs) {
    ranked += epoch.train.ranked + epoch.validation->ranked;
  }
  return difference(emulated::counts(), before);
}

/// Two epochs of 22 images that are trained with, and of 5 that are evaluated.
TEST(CudaCounts, RanksPredictionsOnTheDevice) {
  constexpr std::uint64_t kImages = 2 * (22 + 5);
  double ranked_of_few = 0, ranked_of_many = 0;
  MadeOptions options = on_device();
  options.classes = 5;
  const emulated::Counts few = counted(options, ranked_of_few);
  options.classes = 7;
  const emulated::Counts many = counted(options, ranked_of_many);
  EXPECT_EQ(ranked_of_few, 0);
  EXPECT_EQ(ranked_of_many, kImages);
  EXPECT_EQ(many.to_host.calls, few.to_host.calls);  // probabilities stay there
  EXPECT_EQ(many.waits(), few.waits());
  EXPECT_EQ(many.timed_events + few.timed_events, 0u);
}

/// Two epochs of five steps, in each of which a measure is waited for once, whatever the layers.
TEST(CudaCounts, NormsAreWaitedForTogether) {
  constexpr std::uint64_t kSteps = 2 * 5;
  const auto waits = [](const optim::UpdateRule& rule, std::optional<double> clip_norm) {
    MadeOptions options = on_device();
    options.optimizer.rule = rule;
    options.optimizer.clip_norm = clip_norm;
    double ranked = 0;
    return counted(options, ranked).waits();
  };
  const std::uint64_t plain = waits(optim::Adam{}, std::nullopt);
  EXPECT_EQ(waits(optim::Adam{}, 1e-3), plain + kSteps);
  EXPECT_EQ(waits(optim::Lamb{}, std::nullopt), plain + kSteps);
  EXPECT_EQ(waits(optim::Lamb{}, 1e-3), plain + 2 * kSteps);
}

}  // namespace
}  // namespace cputrain::loop
