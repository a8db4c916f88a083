#include "scaling/sweep/sweep_plan.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "scaling/cells/axes.h"
#include "tests/support/refusal.h"

namespace cputrain::sweep {
namespace {

cells::SweepGrid grid_of_gpus() {
  cells::SweepGrid grid;
  grid.cpus = {1, 96};
  grid.gpus = {1, 2, 8};
  grid.batches = {64};
  grid.backends = {"cpu", "cuda"};
  return grid;
}

cells::Launching machine_with(std::size_t gpus) {
  cells::Launching here;
  here.backends = {{"cpu", {"float"}}, {"cuda", {"float"}, gpus, gpus == 0 ? "no driver" : ""}};
  return here;
}

/// The message of the refusal; empty without one.
std::string refusal(const cells::SweepGrid& grid, const std::optional<cells::Launching>& here) {
  return testing::refusal_of(ExitCode::usage, [&] { check_gpus(grid, here); });
}

TEST(GridLimitsTest, GpusThatAreNotThereAreRefused) {
  EXPECT_EQ(refusal(grid_of_gpus(), machine_with(8)), "");
  EXPECT_EQ(refusal(grid_of_gpus(), machine_with(4)),
            "--gpus 1,2,8: this machine has 4 GPUs for backend cuda, not 8; name so many at most, "
            "--oversubscribe to let ranks share them, or what starts ranks on several machines "
            "(--launcher)");
  EXPECT_EQ(refusal(grid_of_gpus(), machine_with(0)),
            "--gpus 1,2,8: there is no device for backend cuda here: no driver; leave it and "
            "--gpus out, or measure where it is (--launcher, --plan-only)");
  cells::Launching without = machine_with(0);
  without.backends.pop_back();
  EXPECT_EQ(refusal(grid_of_gpus(), without),
            "--gpus 1,2,8: this build has no backend cuda; build one that has it, or leave it and "
            "--gpus out");
}

TEST(GridLimitsTest, WhereOthersMeasureNobodyKnows) {
  EXPECT_EQ(refusal(grid_of_gpus(), std::nullopt), "");
  cells::Launching here = machine_with(0);
  here.words = "srun";
  EXPECT_EQ(refusal(grid_of_gpus(), here), "");
  here = machine_with(1);
  here.cluster = true;
  EXPECT_EQ(refusal(grid_of_gpus(), here), "");
  here.cluster = false;
  here.oversubscribe = true;
  EXPECT_EQ(refusal(grid_of_gpus(), here), "");
  // Columns of GPUs that --np counts may be n/a.
  cells::SweepGrid by_cpus = grid_of_gpus();
  by_cpus.gpus.clear();
  EXPECT_EQ(refusal(by_cpus, machine_with(0)), "");
}

TEST(GridLimitsTest, GpusNeedAColumn) {
  cells::SweepGrid grid = grid_of_gpus();
  grid.backends = {"cpu"};
  for (const auto& here : {std::optional(machine_with(8)), std::optional<cells::Launching>()}) {
    EXPECT_EQ(refusal(grid, here),
              "--gpus 1,2,8 with --backend cpu: no column is of GPUs; add a backend of GPUs, such "
              "as --backend cpu,cuda");
  }
}

TEST(GridLimitsTest, BatchesOfGpusAreNamedByTheirFlag) {
  cells::SweepGrid grid = grid_of_gpus();
  grid.backends = {"cuda"};
  grid.batches.clear();
  grid.batches_per_rank = {1 << 22};
  try {
    check_limits(cells::cells_of(grid), grid);
    ADD_FAILURE() << "was taken";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "--batch-per-rank 4194304 with --gpus 1,2,8: batches of up to 16777216 over all "
              "ranks are allowed, and 8 ranks make 33554432");
  }
}

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
