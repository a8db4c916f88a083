#include "scaling/cells/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cputrain::cells {
namespace {

std::vector<std::string> names_of(const SweepGrid& grid) {
  std::vector<std::string> names;
  for (const Cell& cell : cells_of(grid)) names.push_back(cell_name(cell));
  return names;
}

TEST(SweepGridTest, BackendsOutermostThenCpusThreadsBatches) {
  SweepGrid grid;
  grid.cpus = {1, 2};
  grid.batches = {16, 32};
  grid.backends = {"cpu", "cuda"};
  EXPECT_EQ(names_of(grid),
            (std::vector<std::string>{"np1-t1-b16-cpu", "np1-t1-b32-cpu", "np2-t1-b16-cpu",
                                      "np2-t1-b32-cpu", "np1-t1-b16-cuda", "np1-t1-b32-cuda",
                                      "np2-t1-b16-cuda", "np2-t1-b32-cuda"}));
}

TEST(SweepGridTest, ThreadsDivideCpusAndWhatDoesNotDivideIsLeftOut) {
  SweepGrid grid;
  grid.cpus = {4, 6};
  grid.threads = {1, 2, 4};
  grid.batches = {16};
  grid.backends = {"cpu", "reference"};
  const std::vector<Cell> cells = cells_of(grid);
  ASSERT_EQ(cells.size(), 10u);
  for (const Cell& cell : cells) EXPECT_EQ(cell.ranks * cell.threads, cell.cpus);
  EXPECT_EQ(left_out_of(grid),  // once, whatever the backends
            std::vector<std::string>{"6 CPUs are no whole number of ranks with 4 threads each"});
}

// Four GPUs are four ranks, whatever the threads beside them.
TEST(SweepGridTest, ADeviceIsARank) {
  SweepGrid grid;
  grid.cpus = {3, 4};
  grid.threads = {2, 4};
  grid.batches = {16};
  grid.backends = {"cuda", "cpu"};
  EXPECT_EQ(names_of(grid), (std::vector<std::string>{"np3-t1-b16-cuda", "np4-t1-b16-cuda",
                                                      "np2-t2-b16-cpu", "np1-t4-b16-cpu"}));
  EXPECT_EQ(cells_of(grid)[1].cpus, 4);
  EXPECT_EQ(left_out_of(grid).size(),
            2u);  // 3 CPUs in twos and in fours, though the GPUs come first
}

TEST(SweepGridTest, BatchOfEachRankGrowsWithTheRanks) {
  SweepGrid grid;
  grid.cpus = {2, 8};
  grid.threads = {2};
  grid.batches = {32};
  grid.batches_per_rank = {32};
  grid.backends = {"cpu"};
  const std::vector<Cell> cells = cells_of(grid);
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(cells[1].batch, 32u);  // 1 rank
  EXPECT_EQ(cells[3].batch, 128u);
  EXPECT_EQ(cells[3].batch_per_rank, 32);
  EXPECT_EQ(cell_name(cells[3]), "np4-t2-w32-cpu");
  EXPECT_NE(cell_name(cells[0]), cell_name(cells[1]));
}

TEST(Doubled, EndsWithTheLast) {
  EXPECT_EQ(doubled(4, 100), (std::vector<int>{4, 8, 16, 32, 64, 100}));
  EXPECT_EQ(doubled(4, 16), (std::vector<int>{4, 8, 16}));
  EXPECT_EQ(doubled(32, 16), (std::vector<int>{16}));
}

TEST(EpochSizeTest, TheShortLastStepCountsAsTheImagesItHas) {
  const EpochSize epoch{22'500};
  EXPECT_DOUBLE_EQ(epoch.steps(128), 175 + 100.0 / 128);
  EXPECT_DOUBLE_EQ(epoch.images_in(128), 22'500);
  const EpochSize dropping{22'500, true};
  EXPECT_DOUBLE_EQ(dropping.steps(128), 175);
  EXPECT_DOUBLE_EQ(dropping.images_in(128), 22'400);
  const EpochSize small{115};  // one step of all there are
  EXPECT_DOUBLE_EQ(small.steps(1024), 1);
  EXPECT_DOUBLE_EQ(small.images_in(1024), 115);
}

TEST(StepPlanTest, DecodesWhatItsStepsNeedAndNoMore) {
  Cell cell;
  cell.batch = 1024;
  const EpochSize epoch{22'500};
  StepPlan plan = steps_for(cell, epoch, 4);
  EXPECT_EQ(plan.measured, 4);
  EXPECT_EQ(plan.warm_up, 2);  // 32 micro-batches a step
  EXPECT_EQ(plan.images, 6u * 1024);
  cell.batch = 128;
  cell.ranks = 96;
  plan = steps_for(cell, epoch, {});
  EXPECT_EQ(plan.measured, 16);  // 2,048 images
  EXPECT_EQ(plan.warm_up, 13);   // a micro-batch a step
  EXPECT_EQ(steps_for(cell, {300}, 4).images, 300u);
  cell.batch = 1;
  EXPECT_EQ(steps_for(cell, epoch, {}).measured, 25);
}

// CPUs of one count, GPUs of another.
TEST(PlanTest, GpusHaveCountsOfTheirOwn) {
  SweepGrid grid;
  grid.cpus = {8, 96};
  grid.threads = {1, 8};
  grid.gpus = {1, 4};
  grid.batches = {64};
  grid.backends = {"cpu", "cuda"};
  EXPECT_EQ(names_of(grid),
            (std::vector<std::string>{"np8-t1-b64-cpu", "np1-t8-b64-cpu", "np96-t1-b64-cpu",
                                      "np12-t8-b64-cpu", "np1-t1-b64-cuda", "np4-t1-b64-cuda"}));
  EXPECT_EQ(count_cells(grid), 6);
  const std::vector<Cell> cells = cells_of(grid);
  EXPECT_EQ(cells.back().gpus, 4);
  EXPECT_EQ(cells.front().gpus, 0);
  EXPECT_EQ(cell_text(cells.back()), "4 GPUs, batch 64, cuda");
  EXPECT_EQ(cell_text(cells.front()), "8 ranks x 1 thread, batch 64, cpu");
}

}  // namespace
}  // namespace cputrain::cells
