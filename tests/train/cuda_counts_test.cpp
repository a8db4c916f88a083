// What a training asks of a device, as the emulated one counts it.
#include <gtest/gtest.h>

#include "backends/cuda/backend.h"
#include "comm/solo.h"
#include "emulated/counts.h"
#include "tests/train/made_training.h"

namespace cputrain::train {
namespace {

/// What a training of so many classes takes of the device, and of how many images answers were
/// ranked.
emulated::Counts counted(int classes, double& ranked) {
  MadeOptions options;
  options.backend = [] { return cuda::make_device_backend(0, 1); };
  options.classes = classes;
  options.prefetch = 0;  // a thread that is ahead may have asked for more, or not
  const emulated::Counts before = emulated::counts();
  const MadeResult made = train_made(*comm::make_solo(), options);
  ranked = 0;
  for (const logging::EpochRecord& epoch : made.recorder.epochs) {
    ranked += epoch.train.ranked + epoch.validation->ranked;
  }
  return difference(emulated::counts(), before);
}

/// Two epochs of 22 images that are trained with, and of 5 that are evaluated.
TEST(CudaCounts, RanksAnswersOnTheDevice) {
  constexpr std::uint64_t kImages = 2 * (22 + 5);
  double ranked_of_few = 0, ranked_of_many = 0;
  const emulated::Counts few = counted(5, ranked_of_few), many = counted(7, ranked_of_many);
  EXPECT_EQ(ranked_of_few, 0);
  EXPECT_EQ(ranked_of_many, kImages);
  EXPECT_EQ(many.to_host.calls, few.to_host.calls);  // probabilities stay there
  EXPECT_EQ(many.waits(), few.waits());
  EXPECT_EQ(many.timed_events + few.timed_events, 0u);
}

}  // namespace
}  // namespace cputrain::train
