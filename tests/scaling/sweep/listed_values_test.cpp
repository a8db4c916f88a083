#include "scaling/sweep/sweep_plan.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "scaling/cells/axes.h"

namespace cputrain::sweep {
namespace {

TEST(ListedValuesTest, EveryListedFlagIsOneOfATraining) {
  training::TrainingFlags flags;
  set_value(flags, "allreduce", "ring");
  set_value(flags, "compress", "powersgd:2");
  set_value(flags, "lr", "0.25");
  set_value(flags, "precision", "exact");
  set_value(flags, "prefetch", "0");
  EXPECT_EQ(comm::to_text(flags.allreduce), "ring");
  EXPECT_EQ(exchange::to_text(flags.compress), "powersgd:2");
  EXPECT_EQ(flags.lr, 0.25);
  EXPECT_EQ(flags.precision, Precision::exact);
  EXPECT_THROW(set_value(flags, "precision", "fp32"), Error);
  EXPECT_EQ(flags.prefetch, 0);
  set_value(flags, "lr", std::string(cells::kOwnDefault));  // leaves it
  EXPECT_EQ(flags.lr, 0.25);
}

TEST(ListedValuesTest, CombinationsThatNothingCanTrainSayWhy) {
  training::TrainingFlags flags;
  EXPECT_EQ(why_never(flags, {{"allreduce", "ring"}, {"compress", "fp16"}}), "");
  const std::string why = why_never(flags, {{"allreduce", "shm"}, {"compress", "fp16"}});
  EXPECT_NE(why.find("--compress fp16 with --allreduce shm"), std::string::npos) << why;
  cells::SweepGrid grid;
  grid.listed = {{"allreduce", {"shm", "ring"}}, {"compress", {"fp16"}}};
  EXPECT_EQ(comm::to_text(choose_any(flags, grid).flags.allreduce), "ring");
  grid.listed = {{"allreduce", {"shm"}}, {"compress", {"fp16"}}};
  EXPECT_THROW(choose_any(flags, grid), Error);
}

}  // namespace
}  // namespace cputrain::sweep
