#include "report/scaling_table.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "report/document.h"
#include "report/grid_tables.h"
#include "report/scaling_document.h"

namespace cputrain {
namespace {

Cell cell(int ranks, int threads, std::size_t batch, double seconds,
          CellStatus status = CellStatus::measured) {
  Cell c;
  c.cpus = ranks * threads;
  c.ranks = ranks;
  c.threads = threads;
  c.batch = batch;
  c.status = status;
  c.seconds_per_epoch = seconds;
  return c;
}

Cell absent(int ranks, std::size_t batch, const std::string& reason) {
  Cell c = cell(ranks, 1, batch, 1, CellStatus::absent);
  c.seconds_per_epoch.reset();
  c.reason = reason;
  return c;
}

CellSource source(std::vector<Cell> cells, const std::string& folder = "a") {
  CellTable table;
  table.model = "dogcat";
  table.images_per_epoch = 22500;
  table.cells = std::move(cells);
  return {folder, std::move(table), folder};
}

ScalingTable table_of(std::vector<Cell> cells, const Prices& prices = {}) {
  return make_scaling_table({source(std::move(cells))}, prices);
}

TEST(ScalingTable, FiguresFollowFromTimes) {
  Cell with_work = cell(4, 1, 128, 50);
  with_work.gflops = 300;
  with_work.fma_gflops = 400;
  const auto table = table_of({cell(1, 1, 128, 150), with_work});
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

TEST(ScalingTable, TheQuickestSplitStands) {
  const auto table = table_of({cell(1, 4, 128, 60), cell(4, 1, 128, 50), cell(2, 2, 128, 55)});
  const ScalingCell& four = *table.series[0].strong.at(128, 4);
  EXPECT_EQ(four.cell.ranks, 4);
  ASSERT_EQ(four.splits.size(), 3u);
  EXPECT_EQ(four.splits[1].ranks, 2);
  EXPECT_EQ(four.splits[2].ranks, 1);
}

TEST(ScalingTable, ARowWithoutOneCpuIsAgainstTheFewest) {
  const auto table = table_of(
      {absent(1, 1024, "memory"), cell(2, 1, 1024, 80), cell(8, 1, 1024, 25, CellStatus::scaled)});
  const Grid& grid = table.series[0].strong;
  EXPECT_EQ(grid.bases.at(1024), 2);
  EXPECT_DOUBLE_EQ(*grid.at(1024, 8)->speed_up, 3.2);
  EXPECT_DOUBLE_EQ(*grid.at(1024, 8)->efficiency, 0.8);
  EXPECT_EQ(grid.at(1024, 8)->against, CellStatus::scaled);
  EXPECT_FALSE(grid.at(1024, 1)->speed_up);
}

// The published table's own row: (128 - 97) / 128 = 24.2 %, (504 - 389) / 504 = 22.8 %.
TEST(ScalingTable, IncreaseWithTheBatchAsPublished) {
  const auto table = table_of({cell(4, 1, 128, 504), cell(96, 1, 128, 128), cell(4, 1, 1024, 389),
                               cell(96, 1, 1024, 97), cell(2, 1, 128, 865), cell(1, 1, 64, 900)});
  const auto increase = batch_increase(table.series[0].strong);
  ASSERT_TRUE(increase);
  EXPECT_EQ(increase->from, 128u);
  EXPECT_EQ(increase->to, 1024u);
  ASSERT_EQ(increase->by_cpus.size(), 2u);
  EXPECT_NEAR(increase->by_cpus.at(4), 0.228, 5e-4);
  EXPECT_NEAR(increase->by_cpus.at(96), 0.242, 5e-4);
  EXPECT_FALSE(batch_increase(table_of({cell(1, 1, 128, 5)}).series[0].strong));
}

TEST(ScalingTable, WeakScalingIsAGridOfItsOwn) {
  Cell one = cell(1, 1, 32, 100), four = cell(4, 1, 128, 40);
  one.batch_per_rank = four.batch_per_rank = 32;
  const auto table = table_of({one, four, cell(4, 1, 128, 30)});
  const Series& series = table.series[0];
  EXPECT_EQ(series.weak.rows, std::vector<std::size_t>{32});
  EXPECT_DOUBLE_EQ(*series.weak.at(32, 4)->efficiency, 100.0 / 40 / 4);
  EXPECT_EQ(*series.strong.at(128, 4)->cell.seconds_per_epoch, 30);
}

TEST(ScalingTable, PricesAreOfTheMachineOrOfACpu) {
  Prices machine, cpu;
  machine.per_hour[""] = 3.6;
  cpu.per_cpu_hour["cpu"] = 0.9;
  EXPECT_DOUBLE_EQ(*machine.of(cell(4, 1, 128, 1000)), 1.0);
  EXPECT_DOUBLE_EQ(*cpu.of(cell(4, 1, 128, 1000)), 1.0);
  Cell gpu = cell(1, 1, 128, 1000);
  gpu.backend = "cuda";
  EXPECT_FALSE(cpu.of(gpu));
  machine.per_hour["cuda"] = 7.2;
  EXPECT_DOUBLE_EQ(*machine.of(gpu), 2.0);
  EXPECT_FALSE(machine.of(absent(1, 128, "")));
}

TEST(ScalingTable, FoldersMergeAndTheBetterFoundedFigureStays) {
  const auto table = make_scaling_table(
      {source({cell(1, 1, 128, 100), cell(2, 1, 128, 60, CellStatus::scaled)}),
       source({cell(1, 1, 128, 90, CellStatus::scaled), cell(2, 1, 128, 55, CellStatus::scaled)},
              "b")},
      {});
  ASSERT_EQ(table.series.size(), 1u);
  EXPECT_EQ(*table.series[0].strong.at(128, 1)->cell.seconds_per_epoch, 100);
  EXPECT_EQ(*table.series[0].strong.at(128, 2)->cell.seconds_per_epoch, 55);
  EXPECT_EQ(table.series[0].strong.at(128, 2)->folder, "b");
  EXPECT_EQ(table.remarks.size(), 1u);
}

// A diagonal of 501 cells would be a table of a quarter of a million.
TEST(ScalingTable, RefusesWhatNobodyCouldRead) {
  std::vector<Cell> diagonal;
  for (int i = 1; i <= 500; ++i) diagonal.push_back(cell(i, 1, static_cast<std::size_t>(i), 1));
  EXPECT_NO_THROW(table_of(diagonal));
  diagonal.push_back(cell(501, 1, 501, 1));
  EXPECT_THROW(table_of(diagonal), Error);
}

TEST(ScalingTable, MeasuredSimulatedAndDevicesAreSeries) {
  CellSource simulated = source({cell(96, 1, 128, 10, CellStatus::simulated)});
  simulated.table.machine.platform = "skylake-96";
  Cell gpu = cell(1, 1, 128, 5);
  gpu.backend = "cuda";
  const auto table =
      make_scaling_table({source({gpu}), simulated, source({cell(1, 1, 128, 100)})}, {});
  ASSERT_EQ(table.series.size(), 3u);
  EXPECT_EQ(table.series[0].name, "cpu, skylake-96, simulated");
  EXPECT_EQ(table.series[1].name, "cpu, unknown machine");
  EXPECT_EQ(table.series[2].name, "cuda");  // devices last, whatever the order of folders
}

/// Texts of a document's tables, row by row: "128: 100 | 60 scaled".
std::vector<std::string> lines_of(const Document& document, const std::string& section) {
  std::vector<std::string> lines;
  for (const Section& s : document.sections) {
    if (s.id != section) continue;
    for (const DocumentTable& t : s.tables) {
      for (const Row& row : t.rows) {
        std::string line = row.label + ":";
        for (const Entry& e : row.entries) {
          line += " " + e.text + (e.mark.empty() ? "" : " " + e.mark);
          if (e.note > 0) line += " (" + t.notes.at(static_cast<std::size_t>(e.note) - 1) + ")";
          line += " |";
        }
        lines.push_back(line);
      }
    }
  }
  return lines;
}

TEST(ScalingDocument, EveryCellSaysWhatKindOfFigureItIs) {
  const std::vector<CellSource> sources{
      source({cell(1, 1, 128, 100), cell(2, 1, 128, 64, CellStatus::scaled),
              absent(1, 1024, "needs 9 GB of 8 GB"), cell(2, 1, 1024, 48, CellStatus::scaled)})};
  const ScalingTable table = make_scaling_table(sources, {});
  const Document document = scaling_document({table, sources, std::nullopt, {}, {}});
  const std::vector<std::string> seconds{
      "128: 100 | 64.0 scaled |", "1024: n/a (needs 9 GB of 8 GB) | 48.0 scaled |",
      "increase of 1024 with regard to batch 128:  | +25.0 % scaled |"};
  EXPECT_EQ(lines_of(document, "seconds"), seconds);
  const std::vector<std::string> efficiency{"128: 100.0 | 78.1 scaled |",
                                            "1024: n/a (needs 9 GB of 8 GB) | 100.0 scaled |"};
  EXPECT_EQ(lines_of(document, "efficiency"), efficiency);
  EXPECT_TRUE(lines_of(document, "arithmetic").empty());  // no cell has GFLOP/s
}

TEST(ScalingDocument, SetsOursBesideAPublishedTable) {
  const std::vector<CellSource> sources{source({cell(1, 1, 128, 439), cell(2, 1, 512, 403)})};
  const std::optional<ReferenceTable> paper = parse_reference(
      "cpus,batch,seconds_per_epoch\n1,128,878\n1,256,\n2,256,806\n4,256,456\n1,512,\n2,512,806\n"
      "4,512,456\n",
      "paper.csv");
  const ScalingTable table = make_scaling_table(sources, {});
  const Document document = scaling_document({table, sources, paper, {}, {}});
  const auto lines = lines_of(document, "reference");
  ASSERT_EQ(lines.size(), 7u);  // ours has no batch 256
  EXPECT_EQ(lines[1], "128 published: 878 |  |  |");
  EXPECT_EQ(lines[2], "128 ratio: 0.500 |  |  |");
  EXPECT_EQ(lines[3], "256 published: n/a (n/a in the published table) | 806 | 456 |");
  EXPECT_EQ(lines[6], "512 ratio:  | 0.500 |  |");
  bool said = false;
  for (const Section& s : document.sections) {
    for (const std::string& remark : s.remarks) said |= remark.starts_with("Rows 256 and 512");
  }
  EXPECT_TRUE(said);
}

// A GPU's row of its own batches is no part of the CPUs' row.
TEST(ScalingDocument, EveryPairOfBatchesHasItsIncrease) {
  std::vector<Cell> cells{cell(1, 1, 128, 100), cell(1, 1, 1024, 80), cell(1, 1, 128, 10),
                          cell(1, 1, 4096, 4)};
  cells[2].backend = cells[3].backend = "cuda";
  const std::vector<CellSource> sources{source(cells)};
  const ScalingTable table = make_scaling_table(sources, {});
  const auto lines = lines_of(scaling_document({table, sources, {}, {}, {}}), "seconds");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[3], "increase of 1024 with regard to batch 128: +20.0 % |  |");
  EXPECT_EQ(lines[4], "increase of 4096 with regard to batch 128:  | +60.0 % |");
}

TEST(ScalingDocument, GpusStandBesideCpusAndOtherMachinesApart) {
  Cell gpu = cell(1, 1, 128, 5);
  gpu.backend = "cuda";
  std::vector<CellSource> sources{source({cell(1, 1, 128, 100), cell(2, 1, 128, 60)}),
                                  source({cell(4, 1, 128, 40)}, "b"), source({gpu}, "c")};
  sources[1].table.machine.cpu = "another";
  const ScalingTable table = make_scaling_table(sources, {});
  const Document document = scaling_document({table, sources, {}, {}, {}});
  EXPECT_EQ(lines_of(document, "seconds"),
            (std::vector<std::string>{"128: 100 | 60.0 | 5.00 |", "128: 40.0 |"}));
}

TEST(ScalingDocument, ASweepThatCouldNotRunSaysWhy) {
  const std::vector<CellSource> sources{
      source({absent(1, 128, "no GPU"), absent(2, 128, "no GPU")})};
  const ScalingTable table = make_scaling_table(sources, {});
  const Document document = scaling_document({table, sources, {}, {}, {}});
  EXPECT_EQ(lines_of(document, "seconds"),
            std::vector<std::string>{"128: n/a (no GPU) | n/a (no GPU) |"});
  EXPECT_TRUE(lines_of(document, "speed-up").empty());
}

std::vector<std::string> remarks_of(const Document& document, const std::string& section) {
  for (const Section& s : document.sections) {
    if (s.id == section) return s.remarks;
  }
  return {};
}

// Proportions 0.5 and 0.6 of 22,500 images: standard error of their difference
// sqrt((0.25 + 0.24) / 22500) = 0.004667; one pair: 1.96 of them.
TEST(ScalingDocument, SaysWhetherAccuracyDependsOnCpusOrBatch) {
  std::vector<Cell> cells{cell(1, 1, 128, 100), cell(2, 1, 128, 60), cell(1, 1, 256, 90)};
  cells[0].final_accuracy = 0.6;
  cells[1].final_accuracy = 0.5;
  cells[2].final_accuracy = 0.601;
  const std::vector<CellSource> sources{source(cells)};
  const ScalingTable table = make_scaling_table(sources, {});
  const auto remarks = remarks_of(scaling_document({table, sources, {}, {}, {}}), "accuracy");
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_NE(remarks[0].find("at most 0.1000 (0.5000 on 2 CPUs"), std::string::npos) << remarks[0];
  EXPECT_NE(remarks[0].find("more than the 0.0091 by"), std::string::npos) << remarks[0];
  EXPECT_NE(remarks[1].find("at most 0.0010"), std::string::npos) << remarks[1];
  EXPECT_NE(remarks[1].find("within the 0.0091 by"), std::string::npos) << remarks[1];
}

TEST(ScalingDocument, ComparesTheLastStepThatAllHave) {
  const std::vector<CellSource> sources{source({cell(1, 1, 128, 100), cell(2, 1, 128, 60)})};
  const ScalingTable table = make_scaling_table(sources, {});
  const Series& series = table.series[0];
  const std::vector<CellCurve> curves{
      {&series, series.strong.at(128, 1), {{128, 256, 384}, {0.7, 0.6, 0.1}, {0, 0, 0}}},
      {&series, series.strong.at(128, 2), {{128, 256}, {0.7, 0.625}, {0, 0}}}};
  const auto remarks = remarks_of(scaling_document({table, sources, {}, {}, curves}), "accuracy");
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("at most 0.025 (after 256 images 0.600000 on 1 CPU"), std::string::npos)
      << remarks[0];
}

TEST(ScalingDocument, FiguresHaveThreeDigits) {
  EXPECT_EQ(figure_text(1234.5), "1234");
  EXPECT_EQ(figure_text(99.96), "100");
  EXPECT_EQ(figure_text(9.996), "10.0");
  EXPECT_EQ(figure_text(1), "1.00");
  EXPECT_EQ(figure_text(0.12345), "0.123");
  EXPECT_EQ(figure_text(0), "0");
}

}  // namespace
}  // namespace cputrain
