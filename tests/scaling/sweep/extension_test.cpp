#include "scaling/sweep/sweep_request.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::sweep {
namespace {

std::vector<std::string> names_of(const std::vector<cells::Cell>& cells) {
  std::vector<std::string> names;
  for (const cells::Cell& cell : cells) names.push_back(cells::cell_name(cell));
  return names;
}

cells::SweepGrid grid_there() {
  return grid_from({{"np", "1,2"}, {"threads", "1"}, {"batch", "8"}, {"backend", "cpu"}}, "there");
}

TEST(ExtensionTest, NewValuesGoBehindThoseThatAreThere) {
  cells::SweepGrid added;
  added.cpus = {4, 1};
  added.backends = {"cuda"};
  added.batches_per_rank = {16};
  added.listed = {{"allreduce", {"ring"}}};
  const cells::SweepGrid all = united(grid_there(), added);
  EXPECT_EQ(all.cpus, (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(all.threads, std::vector<int>{1});
  EXPECT_EQ(all.batches, std::vector<std::size_t>{8});
  EXPECT_EQ(all.batches_per_rank, std::vector<std::size_t>{16});
  EXPECT_EQ(all.backends, (std::vector<std::string>{"cpu", "cuda"}));
  // What is there had the usual value, though nobody said so.
  EXPECT_EQ(all.listed.at("allreduce"), (std::vector<std::string>{"auto", "ring"}));
}

TEST(ExtensionTest, TasksKeepTheirNumbers) {
  std::vector<cells::Cell> before = cells::cells_of(grid_there());
  Kept kept;
  kept.order = names_of(before);
  cells::SweepGrid added = grid_there();
  added.cpus = {1};
  added.batches = {4};
  added.listed = {{"lr", {"0.1"}}};
  cells::SweepGrid all = united(grid_there(), added);
  std::vector<cells::Cell> cells = cells::cells_of(all);
  ASSERT_EQ(cells.size(), 8u);
  put_in_order(cells, kept);
  EXPECT_EQ(cells::cell_name(cells[0]), "np1-t1-b8-cpu");
  EXPECT_EQ(cells::cell_name(cells[1]), "np2-t1-b8-cpu");
  // A second extension keeps those of the first where they are, too.
  kept.order = names_of(cells);
  all.cpus.insert(all.cpus.begin(), 3);
  cells = cells::cells_of(all);
  put_in_order(cells, kept);
  const std::vector<std::string> names = names_of(cells);
  EXPECT_EQ(std::vector<std::string>(names.begin(), names.begin() + 8), kept.order);
}

TEST(ExtensionTest, WhatIsKeptComesBackFromItsFile) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(kept_in(folder.path()), Kept{});
  const Kept kept{{"np1-t1-b8-cpu"}, {{8, 112}, {16, 224}}};
  const auto file = folder.path() / kKeptName;
  std::ofstream(file) << to_json(kept).dump();
  EXPECT_EQ(kept_in(folder.path()), kept);
  for (const char* damaged : {"{", "{\"order\":[]}", "{\"order\":[],\"images\":{\"x\":1}}",
                              "{\"order\":[],\"images\":{\"8\":-1}}", "[]"}) {
    std::ofstream(file) << damaged;
    EXPECT_THROW(kept_in(folder.path()), Error) << damaged;
  }
}

TEST(ExtensionTest, AGridThatNobodyWroteIsRefused) {
  for (const nlohmann::json& flags :
       {nlohmann::json{{"np", 1}}, nlohmann::json{{"np", "1,x"}}, nlohmann::json{{"np", "0"}}}) {
    EXPECT_THROW(grid_from(flags, "there"), Error) << flags.dump();
  }
  EXPECT_TRUE(is_of_grid("np"));
  EXPECT_TRUE(is_of_grid("compress"));
  EXPECT_FALSE(is_of_grid("steps"));
}

TEST(GridLimitsTest, CellsAreCountedBeforeTheyAreMade) {
  cells::SweepGrid grid = grid_there();
  check_size(grid);
  std::vector<std::string>& rates = grid.listed["lr"];
  for (int i = 1; i <= 1000; ++i) rates.push_back(std::to_string(i));
  check_size(grid);
  for (int i = 3; i <= 1000; ++i) grid.cpus.push_back(i);
  const std::string text = testing::refused(ExitCode::usage, [&] { check_size(grid); });
  EXPECT_NE(text.find("1000000 cells, and at most 100000"), std::string::npos);
}

TEST(ExtensionTest, ColumnsOfGpusThatCpusCountedStay) {
  cells::SweepGrid before = grid_there();
  before.backends = {"cpu", "cuda"};
  cells::SweepGrid added;
  added.gpus = {2, 8};
  const cells::SweepGrid all = united(before, added);
  EXPECT_EQ(all.cpus, (std::vector<int>{1, 2}));
  EXPECT_EQ(all.gpus, (std::vector<int>{1, 2, 8}));
  // Where no column was of GPUs, --gpus alone counts them.
  added.backends = {"cuda"};
  EXPECT_EQ(united(grid_there(), added).gpus, (std::vector<int>{2, 8}));
  EXPECT_TRUE(united(before, grid_there()).gpus.empty());
}

TEST(ExtensionTest, APlanKeepsItsGpus) {
  const cells::SweepGrid grid = grid_from(
      {{"np", "1"}, {"gpus", "1,4"}, {"batch", "8"}, {"backend", "cpu,cuda"}, {"threads", "1"}},
      "there");
  EXPECT_EQ(names_of(cells::cells_of(grid)),
            (std::vector<std::string>{"np1-t1-b8-cpu", "np1-t1-b8-cuda", "np4-t1-b8-cuda"}));
  EXPECT_TRUE(is_of_grid("gpus"));
}

}  // namespace
}  // namespace cputrain::sweep
