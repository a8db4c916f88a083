// What reports say, section by section.

#include "scaling/report/scaling_document.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scaling/report/grid_tables.h"
#include "tests/support/scaling_cells.h"

namespace cputrain::report {
namespace {

using testing::document_of;

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

TEST(ScalingDocument, SetsOursBesideAPublishedTable) {
  const std::vector<CellSource> sources{
      testing::source({testing::cell(1, 1, 128, 439), testing::cell(2, 1, 512, 403)})};
  const std::optional<ReferenceTable> paper = parse_reference(
      "cpus,batch,seconds_per_epoch\n1,128,878\n1,256,\n2,256,806\n4,256,456\n1,512,\n2,512,806\n"
      "4,512,456\n",
      "paper.csv");
  const Document document = document_of(sources, {}, paper);
  const auto lines = lines_of(document, "reference");
  ASSERT_EQ(lines.size(), 7u + 5);  // ours has no batch 256
  EXPECT_EQ(lines[1], "128 published: 878 |  |  |");
  EXPECT_EQ(lines[2], "128 ratio: 0.500 |  |  |");
  EXPECT_EQ(lines[3], "256 published: n/a (n/a in the published table) | 806 | 456 |");
  EXPECT_EQ(lines[6], "512 ratio:  | 0.500 |  |");
  EXPECT_EQ(lines[7], "128 ours: 1.00 (100.0 %) |  |  |");
  EXPECT_EQ(lines[9], "256 published:  | 1.00 (100.0 %) | 1.77 (88.4 %) |");  // 806 by 456, of 2
  bool said = false;
  for (const Section& s : document.sections) {
    for (const std::string& remark : s.remarks) said |= remark.starts_with("Rows 256 and 512");
  }
  EXPECT_TRUE(said);
}

// A GPU's row of its own batches is no part of the CPUs' row.
TEST(ScalingDocument, EveryPairOfBatchesHasItsIncrease) {
  std::vector<cells::Cell> cells{testing::cell(1, 1, 128, 100), testing::cell(1, 1, 1024, 80),
                                 testing::cell(1, 1, 128, 10), testing::cell(1, 1, 4096, 4)};
  cells[2].backend = cells[3].backend = "cuda";
  const auto lines = lines_of(document_of({testing::source(cells)}), "seconds");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[3],
            "time saved by batch 1024 against batch 128 (%): +20.0 (too few repeats to show a "
            "difference) |  |");
  EXPECT_EQ(lines[4],
            "time saved by batch 4096 against batch 128 (%):  | +60.0 (too few repeats to show a "
            "difference) |");
}

std::vector<std::string> remarks_of(const Document& document, const std::string& section) {
  for (const Section& s : document.sections) {
    if (s.id == section) return s.remarks;
  }
  return {};
}

// 10 + 90 / cores with two CPUs a core; ours is all work: 80 / cores.
TEST(ScalingDocument, FitsTheSerialPartOfThePublishedTableAndOfOurs) {
  const std::vector<CellSource> sources{testing::source(
      {testing::cell(1, 1, 64, 80), testing::cell(2, 1, 64, 40), testing::cell(4, 1, 64, 20),
       testing::cell(8, 1, 64, 10, cells::CellStatus::scaled)})};
  const std::optional<ReferenceTable> paper = parse_reference(
      "cpus,batch,seconds_per_epoch\n2,128,100\n4,128,55\n8,128,32.5\n16,128,21.25\n2,256,9\n",
      "paper.csv");
  const auto lines = lines_of(document_of(sources, {}, paper), "fit");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "128: 10.0 fit | 90.0 fit | 0.0 | 10.0 fit | 180 fit | 0.0 |");
  EXPECT_TRUE(lines[1].ends_with(" 80.0 fit, scaled | 0.0 |")) << lines[1];
  std::vector<CellSource> threads = sources;  // four cores with two threads each
  threads[0].table.machine.cores = 4;
  threads[0].table.machine.hardware_threads = 8;
  threads[0].table.cells.push_back(testing::cell(3, 1, 64, 80.0 / 3));
  for (const Section& s : document_of(threads).sections) {
    if (s.id != "fit") continue;
    EXPECT_EQ(s.tables.at(0).groups.at(0).first, "cores = CPUs, 4 at most");
  }
  const std::vector<CellSource> short_row{
      testing::source({testing::cell(1, 1, 64, 80), testing::cell(2, 1, 64, 40)})};
  EXPECT_TRUE(lines_of(document_of(short_row), "fit").empty());
}

// Proportions 0.5 and 0.6 of 22,500 images: standard error of their difference
// sqrt((0.25 + 0.24) / 22500) = 0.004667; one pair: 1.96 of them.
TEST(ScalingDocument, SaysWhetherAccuracyDependsOnCpusOrBatch) {
  std::vector<cells::Cell> cells{testing::cell(1, 1, 128, 100), testing::cell(2, 1, 128, 60),
                                 testing::cell(1, 1, 256, 90)};
  cells[0].final_accuracy = 0.6;
  cells[1].final_accuracy = 0.5;
  cells[2].final_accuracy = 0.601;
  const auto remarks = remarks_of(document_of({testing::source(cells)}), "accuracy");
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_NE(remarks[0].find("at most 0.1000 (0.5000 on 2 CPUs"), std::string::npos) << remarks[0];
  EXPECT_NE(remarks[0].find("more than the 0.0091 by"), std::string::npos) << remarks[0];
  EXPECT_NE(remarks[1].find("at most 0.0010"), std::string::npos) << remarks[1];
  EXPECT_NE(remarks[1].find("within the 0.0091 by"), std::string::npos) << remarks[1];
}

// 0.5 and 0.6 of 2,500 images: sqrt((0.25 + 0.24) / 2500) = 0.014.
TEST(ScalingDocument, AccuraciesAreOfValidationWhereItIsKnown) {
  std::vector<cells::Cell> cells{testing::cell(1, 1, 128, 100), testing::cell(2, 1, 128, 60)};
  cells[0].final_accuracy = cells[1].final_accuracy = 0.9;
  cells[0].val_accuracy = 0.6;
  cells[1].val_accuracy = 0.5;
  std::vector<CellSource> sources{testing::source(cells)};
  sources[0].table.validation_images = 2500;
  const auto remarks = remarks_of(document_of(sources), "accuracy");
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("of validation differ by at most 0.1000"), std::string::npos);
  EXPECT_NE(remarks[0].find("more than the 0.0274 by"), std::string::npos) << remarks[0];
}

// Wilson's interval of 81 of 263 is 0.2553 to 0.3662 in Newcombe (1998), table I.
TEST(ScalingDocument, AccuracyAgainstCpusHasAnIntervalOverTheImages) {
  std::vector<cells::Cell> cells{testing::cell(1, 1, 128, 100), testing::cell(2, 1, 128, 60),
                                 testing::cell(2, 1, 256, 60)};
  cells[0].val_accuracy = 81.0 / 263;
  cells[1].val_accuracy = 0.5;
  std::vector<CellSource> sources{testing::source(cells)};
  sources[0].table.validation_images = 263;
  const ScalingTable table = make_scaling_table(sources, {});
  const Document document = document_of(sources);
  const auto section = std::ranges::find(document.sections, "constancy", &Section::id);
  ASSERT_NE(section, document.sections.end());
  EXPECT_EQ(section->plots, std::vector<std::string>{"accuracy-by-cpus"});
  ASSERT_EQ(section->tables.size(), 1u);
  ASSERT_EQ(section->tables[0].rows.size(), 1u) << "batch 256 has no accuracy";
  EXPECT_EQ(section->tables[0].rows[0].label, "batch 128");
  EXPECT_EQ(section->tables[0].rows[0].entries[1].text, "0.3080 on 1 (0.2553 to 0.3662)");
  EXPECT_EQ(section->tables[0].rows[0].entries[2].text.substr(0, 11), "0.5000 on 2");
  const auto json = table_json(table, {});
  EXPECT_NEAR(json["cells"][0]["val_accuracy_interval"][1], 0.3662, 5e-5);
}

TEST(ScalingDocument, ComparesTheLastStepThatAllHave) {
  const std::vector<CellSource> sources{
      testing::source({testing::cell(1, 1, 128, 100), testing::cell(2, 1, 128, 60)})};
  const ScalingTable table = make_scaling_table(sources, {});
  const Series& series = table.series[0];
  const Curves curves{
      {{&series, series.strong.at(128, 1), {{128, 256, 384}, {0.7, 0.6, 0.1}, {0, 0, 0}}},
       {&series, series.strong.at(128, 2), {{128, 256}, {0.7, 0.625}, {0, 0}}}},
      7};
  const auto remarks = remarks_of(scaling_document({table, sources, {}, {}, curves}), "accuracy");
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_NE(remarks[0].find("at most 0.025 (after 256 images 0.600000 on 1 CPU"), std::string::npos)
      << remarks[0];
  EXPECT_EQ(remarks[1],
            "Curves are those of the first 2 cells that have some; 7 more cells have runs.");
}

TEST(ScalingDocument, FiguresHaveThreeDigits) {
  EXPECT_EQ(figure_text(1234.5), "1234");
  EXPECT_EQ(figure_text(99.96), "100");
  EXPECT_EQ(figure_text(9.996), "10.0");
  EXPECT_EQ(figure_text(1), "1.00");
  EXPECT_EQ(figure_text(0.12345), "0.123");
  EXPECT_EQ(figure_text(0), "0");
}

TEST(ScalingDocument, TheSpreadOfABenchmarkIsThatOfItsSteps) {
  const auto says = [](const std::vector<double>& repeats) {
    cells::Cell cell = testing::cell(1, 1, 128, 100);
    cell.repeats = repeats;
    cell.spread = Interval{90, 110};
    const std::vector<CellSource> sources{testing::source({cell})};
    const ScalingTable table = make_scaling_table(sources, {});
    return remarks_of(scaling_document({table, sources, {}, {}, {}}), "spread").back();
  };
  const char* const kOfSteps = "A benchmark is one repeat: least and most are those of its steps.";
  EXPECT_EQ(says({100}), kOfSteps);
  EXPECT_NE(says({90, 100, 110}), kOfSteps);
}

TEST(ScalingDocument, OfManySuspectsSixAreNamed) {
  std::vector<cells::Cell> cells{testing::cell(1, 1, 128, 1000)};
  for (int n = 2; n <= 10; ++n) cells.push_back(testing::cell(n, 1, 128, 1));
  const auto remarks = remarks_of(document_of({testing::source(cells)}), "speed-up");
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("7 CPUs, batch 128: 1000 times as quick as 1 CPU; 3 more)"),
            std::string::npos)
      << remarks[0];
}

}  // namespace
}  // namespace cputrain::report
