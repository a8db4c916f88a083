#include "scaling/report/scaling_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "scaling/report/grid_tables.h"
#include "tests/support/scaling_cells.h"

namespace cputrain::report {
namespace {

ScalingTable table_of(std::vector<cells::Cell> cells, const cells::Prices& prices = {}) {
  return make_scaling_table({testing::source(std::move(cells))}, prices);
}

TEST(ScalingTable, FiguresFollowFromTimes) {
  cells::Cell with_work = testing::cell(4, 1, 128, 50);
  with_work.gflops = 300;
  with_work.fma_gflops = 400;
  const auto table = table_of({testing::cell(1, 1, 128, 150), with_work});
  ASSERT_EQ(table.series.size(), 1u);
  const Grid& grid = table.series[0].strong;
  const ScalingCell& four = *grid.at(128, 4);
  EXPECT_EQ(four.speed_up, 3);
  EXPECT_EQ(four.efficiency, 0.75);
  EXPECT_EQ(four.images_per_second, 450);
  EXPECT_EQ(four.peak_share, 0.75);
  EXPECT_FALSE(grid.at(128, 1)->peak_share);
  EXPECT_EQ(grid.at(256, 1), nullptr);
}

// Flags with several values are series; a table has them below each other.
TEST(ScalingTable, AxesAreSeriesAndShareATable) {
  std::vector<cells::Cell> cells{testing::cell(1, 1, 128, 100), testing::cell(2, 1, 128, 60),
                                 testing::cell(2, 1, 128, 50), testing::cell(2, 1, 256, 40)};
  cells[0].axes = cells[1].axes = {{"allreduce", "auto"}};
  cells[2].axes = cells[3].axes = {{"allreduce", "ring"}};
  const auto table = table_of(cells);
  ASSERT_EQ(table.series.size(), 2u);
  EXPECT_EQ(table.series[0].name, "cpu, --allreduce auto");
  EXPECT_EQ(table.series[1].name, "cpu, --allreduce ring");
  const auto tables =
      grid_tables(table, &Series::strong,
                  {"Seconds", [](const ScalingCell& c) { return c.cell.seconds_per_epoch; },
                   [](const ScalingCell& c) { return c.cell.status; }});
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].head, (std::vector<std::string>{"1", "2"}));
  ASSERT_EQ(tables[0].rows.size(), 4u);
  EXPECT_EQ(tables[0].rows[0].label, "128, --allreduce auto");
  EXPECT_EQ(tables[0].rows[0].entries[1].text, "60.0");
  EXPECT_EQ(tables[0].rows[1].label, "128, --allreduce ring");
  EXPECT_EQ(tables[0].rows[1].entries[0].text, "");
  EXPECT_EQ(tables[0].rows[1].entries[1].text, "50.0");
  EXPECT_EQ(tables[0].rows[3].entries[1].text, "40.0");
}

TEST(ScalingTable, TheQuickestSplitStands) {
  const auto table = table_of(
      {testing::cell(1, 4, 128, 60), testing::cell(4, 1, 128, 50), testing::cell(2, 2, 128, 55)});
  const ScalingCell& four = *table.series[0].strong.at(128, 4);
  EXPECT_EQ(four.cell.ranks, 4);
  ASSERT_EQ(four.splits.size(), 3u);
  EXPECT_EQ(four.splits[1].ranks, 2);
  EXPECT_EQ(four.splits[2].ranks, 1);
}

TEST(ScalingTable, ARowWithoutOneCpuIsAgainstTheFewest) {
  const auto table = table_of({testing::absent(1, 1024, "memory"), testing::cell(2, 1, 1024, 80),
                               testing::cell(8, 1, 1024, 25, cells::CellStatus::scaled)});
  const Grid& grid = table.series[0].strong;
  EXPECT_EQ(grid.bases.at(1024), 2);
  EXPECT_DOUBLE_EQ(*grid.at(1024, 8)->speed_up, 3.2);
  EXPECT_DOUBLE_EQ(*grid.at(1024, 8)->efficiency, 0.8);
  EXPECT_EQ(grid.at(1024, 8)->against, cells::CellStatus::scaled);
  EXPECT_FALSE(grid.at(1024, 1)->speed_up);
}

// 2.2 is 1.1 times two CPUs, which is not more than that.
TEST(ScalingTable, MoreSpeedThanItsCpusExplainIsSuspect) {
  const auto suspects = [](const std::vector<cells::Cell>& cells) {
    std::vector<int> cpus;
    table_of(cells).for_each([&](const Series&, const ScalingCell& c) {
      if (c.suspect) cpus.push_back(c.cell.cpus);
    });
    return cpus;
  };
  EXPECT_EQ(suspects({testing::cell(1, 1, 128, 110), testing::cell(2, 1, 128, 50),
                      testing::cell(4, 1, 128, 24.9)}),
            std::vector<int>{4});
  // Against the fewest that have a time; a base is never suspect; simulations are no exception.
  EXPECT_EQ(suspects({testing::absent(1, 128, "memory"), testing::cell(2, 1, 128, 100),
                      testing::cell(3, 1, 128, 60)}),
            std::vector<int>{3});
  EXPECT_EQ(suspects({testing::cell(1, 1, 128, 100, cells::CellStatus::simulated),
                      testing::cell(2, 1, 128, 40, cells::CellStatus::simulated)}),
            std::vector<int>{2});
  EXPECT_EQ(suspects({testing::cell(8, 1, 128, 1)}), std::vector<int>{});
  // Twice the images a second and CPU.
  std::vector<cells::Cell> weak{testing::cell(1, 1, 8, 100), testing::cell(2, 1, 16, 25)};
  for (cells::Cell& c : weak) c.batch_per_rank = 8;
  EXPECT_EQ(suspects(weak), std::vector<int>{2});
}

// Another machine is another series: its CPUs explain nothing here.
TEST(ScalingTable, CellsOfOtherMachinesAreNotSuspect) {
  std::vector<CellSource> two{testing::source({testing::cell(1, 1, 128, 100)}),
                              testing::source({testing::cell(2, 1, 128, 10)}, "b")};
  two[1].table.machine.cpu = "another";
  make_scaling_table(two, {}).for_each(
      [](const Series&, const ScalingCell& c) { EXPECT_FALSE(c.suspect); });
  two[1].table.machine.cpu.clear();
  int count = 0;
  make_scaling_table(two, {}).for_each(
      [&](const Series&, const ScalingCell& c) { count += c.suspect ? 1 : 0; });
  EXPECT_EQ(count, 1);
}

// The published table's own row: (128 - 97) / 128 = 24.2 %, (504 - 389) / 504 = 22.8 %.
TEST(ScalingTable, IncreaseWithTheBatchAsPublished) {
  const auto table = table_of({testing::cell(4, 1, 128, 504), testing::cell(96, 1, 128, 128),
                               testing::cell(4, 1, 1024, 389), testing::cell(96, 1, 1024, 97),
                               testing::cell(2, 1, 128, 865), testing::cell(1, 1, 64, 900)});
  const auto increase = batch_increase(table.series[0].strong);
  ASSERT_TRUE(increase);
  EXPECT_EQ(increase->from, 128u);
  EXPECT_EQ(increase->to, 1024u);
  ASSERT_EQ(increase->by_cpus.size(), 2u);
  EXPECT_NEAR(increase->by_cpus.at(4), 0.228, 5e-4);
  EXPECT_NEAR(increase->by_cpus.at(96), 0.242, 5e-4);
  EXPECT_FALSE(batch_increase(table_of({testing::cell(1, 1, 128, 5)}).series[0].strong));
}

TEST(ScalingTable, WeakScalingIsAGridOfItsOwn) {
  cells::Cell one = testing::cell(1, 1, 32, 100), four = testing::cell(4, 1, 128, 40);
  one.batch_per_rank = four.batch_per_rank = 32;
  const auto table = table_of({one, four, testing::cell(4, 1, 128, 30)});
  const Series& series = table.series[0];
  EXPECT_EQ(series.weak.rows, (std::vector<GridRow>{{32, 1}}));
  EXPECT_DOUBLE_EQ(*series.weak.at({32, 1}, 4)->efficiency, 100.0 / 40 / 4);
  EXPECT_EQ(*series.strong.at(128, 4)->cell.seconds_per_epoch, 30);
}

// 2 x 1 is a global batch of 16, 1 x 2 one of 8: no splits of one cell.
TEST(ScalingTable, InWeakScalingOtherThreadsAreOtherWork) {
  std::vector<cells::Cell> cells{testing::cell(1, 1, 8, 100), testing::cell(2, 1, 16, 60),
                                 testing::cell(1, 2, 8, 50), testing::cell(2, 2, 16, 40)};
  for (cells::Cell& c : cells) c.batch_per_rank = 8;
  const Grid grid = table_of(cells).series[0].weak;
  EXPECT_EQ(grid.rows, (std::vector<GridRow>{{8, 1}, {8, 2}}));
  EXPECT_EQ(grid.at({8, 1}, 2)->splits.size(), 1u);
  EXPECT_DOUBLE_EQ(*grid.at({8, 1}, 2)->efficiency, 100.0 / 60 / 2);
  EXPECT_EQ(grid.bases.at({8, 2}), 2);
  EXPECT_DOUBLE_EQ(*grid.at({8, 2}, 4)->efficiency, 50.0 / 40 * 2 / 4);
}

TEST(ScalingTable, PricesAreOfTheMachineOrOfACpu) {
  cells::Prices machine, cpu;
  machine.per_hour[""] = 3.6;
  cpu.per_cpu_hour["cpu"] = 0.9;
  EXPECT_DOUBLE_EQ(*machine.of(testing::cell(4, 1, 128, 1000)), 1.0);
  EXPECT_DOUBLE_EQ(*cpu.of(testing::cell(4, 1, 128, 1000)), 1.0);
  cells::Cell gpu = testing::cell(1, 1, 128, 1000);
  gpu.backend = "cuda";
  EXPECT_FALSE(cpu.of(gpu));
  machine.per_hour["cuda"] = 7.2;
  EXPECT_DOUBLE_EQ(*machine.of(gpu), 2.0);
  EXPECT_FALSE(machine.of(testing::absent(1, 128, "")));
}

TEST(ScalingTable, FoldersMergeAndTheBetterFoundedFigureStays) {
  const auto table = make_scaling_table(
      {testing::source({testing::cell(1, 1, 128, 100),
                        testing::cell(2, 1, 128, 60, cells::CellStatus::scaled)}),
       testing::source({testing::cell(1, 1, 128, 90, cells::CellStatus::scaled),
                        testing::cell(2, 1, 128, 55, cells::CellStatus::scaled)},
                       "b")},
      {});
  ASSERT_EQ(table.series.size(), 1u);
  EXPECT_EQ(*table.series[0].strong.at(128, 1)->cell.seconds_per_epoch, 100);
  EXPECT_EQ(*table.series[0].strong.at(128, 2)->cell.seconds_per_epoch, 55);
  EXPECT_EQ(table.series[0].strong.at(128, 2)->folder, "b");
  EXPECT_EQ(table.remarks.size(), 1u);
}

std::vector<std::string> names_of(const std::vector<CellSource>& sources) {
  std::vector<std::string> names;
  for (const Series& s : make_scaling_table(sources, {}).series) names.push_back(s.name);
  return names;
}

TEST(ScalingTable, FloatOnAGpuIsSaidAsTf32) {
  std::vector<CellSource> sources;
  for (const char* precision : {"float", "exact", "bf16"}) {
    for (const char* backend : {"cuda", "cpu"}) {
      cells::Cell cell = testing::cell(1, 1, 128, 100);
      cell.backend = backend;
      sources.push_back(testing::source({cell}, std::string(backend) + precision));
      sources.back().table.options = {{"precision", precision}};
    }
  }
  const std::vector<std::string> names = names_of(sources);
  for (const char* name : {"cuda tf32", "cuda exact", "cuda bf16", "cpu, --precision bf16"}) {
    EXPECT_EQ(std::ranges::count(names, name), 1) << name;
  }
  cells::Cell others = testing::cell(1, 1, 128, 100);
  others.backend = "cuda";
  for (const bool of_cell : {true, false}) {  // "default" among several, or alone
    cells::Cell usual = others;
    if (of_cell) usual.axes = {{"precision", "default"}};
    std::vector<CellSource> both{testing::source({usual}), sources[0]};
    if (!of_cell) both[0].table.options = {{"precision", "default"}};
    EXPECT_EQ(names_of(both), std::vector<std::string>{"cuda tf32"});
  }
  EXPECT_EQ(names_of({testing::source({others})}), std::vector<std::string>{"cuda"});
}

TEST(ScalingTable, PrecisionsAreNeverMixed) {
  std::vector<CellSource> sources{
      testing::source({testing::cell(1, 1, 128, 100), testing::cell(2, 1, 128, 60)}),
      testing::source({testing::cell(2, 1, 128, 20), testing::cell(4, 1, 128, 15)}, "b")};
  sources[0].table.options = {{"allreduce", "shm"}};
  sources[1].table.options = {{"allreduce", "shm"}, {"precision", "bf16"}};
  const auto table = make_scaling_table(sources, {});
  ASSERT_EQ(table.series.size(), 2u);
  EXPECT_EQ(table.series[0].name, "cpu");  // what all have alike tells nothing
  EXPECT_EQ(table.series[1].name, "cpu, --precision bf16");
  EXPECT_EQ(*table.series[0].strong.at(128, 2)->cell.seconds_per_epoch, 60);
  EXPECT_DOUBLE_EQ(*table.series[1].strong.at(128, 4)->speed_up, 20.0 / 15);
  EXPECT_TRUE(table.remarks.empty());
}

TEST(ScalingTable, WhateverChangesTimesMakesASeries) {
  const std::vector<cells::Cell> cells{testing::cell(1, 1, 128, 100)};
  std::vector<CellSource> two{testing::source(cells), testing::source(cells, "b")};
  EXPECT_EQ(names_of(two).size(), 1u);
  two[1].table.data = "folder";
  EXPECT_EQ(names_of(two), (std::vector<std::string>{"cpu, data not said", "cpu, data folder"}));
  two[1] = testing::source(cells);
  two[1].table.machine.build = "another";
  EXPECT_EQ(names_of(two), (std::vector<std::string>{"cpu, build 1", "cpu, build 2"}));
  EXPECT_EQ(make_scaling_table(two, {}).remarks,
            (std::vector<std::string>{"Build 1: not said.", "Build 2: another."}));
  for (CellSource& one : two) {
    one.table.machine.platform = "skylake-96";
    one.table.options["clock-ghz"] = &one == &two[0] ? "2" : "2.8";
    one.table.machine.build.clear();
  }
  EXPECT_EQ(names_of(two),
            (std::vector<std::string>{"cpu, --clock-ghz 2", "cpu, --clock-ghz 2.8"}));
  two[1].table.options = two[0].table.options;
  two[1].table.options["reproducible"] = "true";
  EXPECT_EQ(names_of(two), (std::vector<std::string>{"cpu", "cpu, --reproducible"}));
}

std::vector<CellSource> of_two_machines() {
  const std::vector<cells::Cell> cells{testing::cell(1, 1, 128, 100)};
  return {testing::source(cells), testing::source(cells, "b")};
}

// Virtual machines hide their processors' names.
TEST(ScalingTable, ACellOfOneProcessorNeverStandsForAnothers) {
  std::vector<CellSource> two = of_two_machines();
  for (CellSource& one : two) one.table.machine.cpu = "AMD EPYC", one.table.machine.cores = 2;
  two[0].table.machine.cpu_id = {.vendor = "AuthenticAMD", .family = 25, .model = 17};
  two[1].table.machine.cpu_id = {.vendor = "AuthenticAMD", .family = 26, .model = 2};
  EXPECT_EQ(names_of(two),
            (std::vector<std::string>{"cpu, AMD EPYC (family 25, model 17), 2 cores",
                                      "cpu, AMD EPYC (family 26, model 2), 2 cores"}));
  two[1].table.machine.cpu_id = two[0].table.machine.cpu_id;
  two[1].table.machine.cpu_id.microcode = "0x2";
  two[1].table.machine.cpu_id.caches = {"L3 1 KiB"};
  EXPECT_EQ(names_of(two).size(), 1u);
  two[1].table.machine.cpu_id.instructions = {"avx2"};
  EXPECT_EQ(names_of(two), (std::vector<std::string>{"cpu, processor 1", "cpu, processor 2"}));
  EXPECT_EQ(make_scaling_table(two, {}).remarks,
            (std::vector<std::string>{"Processor 1: AuthenticAMD, family 25, model 17.",
                                      "Processor 2: AuthenticAMD, family 25, model 17; avx2."}));
  // A cell's own counts, as of trainings that were launched elsewhere.
  two[0].table.cells[0].origin.cpu_id = two[1].table.machine.cpu_id;
  EXPECT_EQ(names_of(two).size(), 1u);
  two[1].table.machine.name = "rack 3";
  EXPECT_EQ(names_of(two)[1], "cpu, rack 3, AMD EPYC (family 25, model 17), 2 cores");
  two[1].table.machine.cpu = "EPYC 9554";
  EXPECT_EQ(names_of(two)[1], "cpu, rack 3, EPYC 9554, 2 cores");
}

TEST(ScalingTable, ACellOfOneKernelsVersionNeverStandsForAnothers) {
  std::vector<CellSource> two = of_two_machines();
  two[0].table.cells[0].origin.kernels_version = 9;
  EXPECT_EQ(names_of(two), (std::vector<std::string>{"cpu, kernels 9", "cpu, kernels 1"}));
  for (CellSource& one : two) one.table.cells[0].origin.kernels_version = 1;
  two[0].table.commit = "commit abc";
  two[1].table.commit = "commit def";
  two[1].table.cells[0].cpus = two[1].table.cells[0].ranks = 2;
  EXPECT_EQ(make_scaling_table(two, {}).remarks,
            (std::vector<std::string>{
                "cpu: cells of 2 commits: 1 cell of commit abc, 1 cell of commit def."}));
}

// Two folders that do not say it may be of two machines.
TEST(ScalingTable, WhatIsNotRecordedIsOfItsFolderAlone) {
  std::vector<CellSource> two = of_two_machines();
  for (CellSource& one : two) one.table.machine.cpu_id = {};
  EXPECT_EQ(names_of(two), (std::vector<std::string>{"cpu, processor 1", "cpu, processor 2"}));
  EXPECT_EQ(make_scaling_table(two, {}).remarks,
            (std::vector<std::string>{"Processor 1: not recorded in a.",
                                      "Processor 2: not recorded in b."}));
  two = of_two_machines();
  two[1].table.cells[0].origin.kernels_version.reset();
  EXPECT_EQ(names_of(two),
            (std::vector<std::string>{"cpu, kernels 1", "cpu, kernels not recorded in b"}));
}

// A diagonal of 501 cells would be a table of a quarter of a million.
TEST(ScalingTable, RefusesWhatNobodyCouldRead) {
  std::vector<cells::Cell> diagonal;
  for (int i = 1; i <= 500; ++i)
    diagonal.push_back(testing::cell(i, 1, static_cast<std::size_t>(i), 1));
  EXPECT_NO_THROW(table_of(diagonal));
  diagonal.push_back(testing::cell(501, 1, 501, 1));
  EXPECT_THROW(table_of(diagonal), Error);
}

TEST(ScalingTable, MeasuredSimulatedAndDevicesAreSeries) {
  CellSource simulated =
      testing::source({testing::cell(96, 1, 128, 10, cells::CellStatus::simulated)});
  simulated.table.machine.platform = "skylake-96";
  cells::Cell gpu = testing::cell(1, 1, 128, 5);
  gpu.backend = "cuda";
  const auto table = make_scaling_table(
      {testing::source({gpu}), simulated, testing::source({testing::cell(1, 1, 128, 100)})}, {});
  ASSERT_EQ(table.series.size(), 3u);
  EXPECT_EQ(table.series[0].name, "cpu, skylake-96, simulated");
  EXPECT_EQ(table.series[1].name, "cpu, unknown machine");
  EXPECT_EQ(table.series[2].name, "cuda");  // devices last, whatever the order of folders
}

}  // namespace
}  // namespace cputrain::report
