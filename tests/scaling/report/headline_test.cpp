// The two sentences at the top of a report, which may not say more than the repeats show.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "scaling/report/scaling_document.h"
#include "tests/support/scaling_cells.h"

namespace cputrain::report {
namespace {

/// A cell of single-threaded ranks with repeats around its median.
cells::Cell spread_cell(int cpus, std::size_t batch, std::vector<double> repeats,
                        cells::CellStatus status = cells::CellStatus::measured) {
  cells::Cell c = testing::cell(cpus, 1, batch, repeats.at(repeats.size() / 2), status);
  c.limits.what = "communication";
  c.repeats = std::move(repeats);
  return c;
}

std::vector<std::string> headlines_of(std::vector<cells::Cell> cells) {
  return headlines(make_scaling_table({testing::source(std::move(cells))}, {}));
}

bool says(const std::vector<std::string>& lines, const std::string& part) {
  return lines.size() == 1 && lines[0].find(part) != std::string::npos;
}

TEST(Headline, NamesFastestCellSpeedUpKneeAndLimit) {
  const auto lines =
      headlines_of({spread_cell(1, 128, {99, 100, 101}), spread_cell(2, 128, {51, 52, 53}),
                    spread_cell(4, 128, {29, 30, 31}), spread_cell(8, 128, {26, 26.5, 27})});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(
      lines[0].starts_with("Fastest: 26.5 s per epoch on 8 CPUs, batch 128, 3.77 times as "
                           "fast as 1 CPU at this batch (95 % interval 3.6"))
      << lines[0];
  EXPECT_TRUE(
      lines[0].ends_with("). The knee is at 4 CPUs (the step to 8 brought 1.13 of 2.00 "
                         "times); on 8 CPUs the limit is communication."))
      << lines[0];
}

// 100 and 90 s with repeats 20 s apart: Welch's interval of the ratio holds 1.
TEST(Headline, AnIntervalThatHoldsOneIsNoDifference) {
  const auto lines =
      headlines_of({spread_cell(1, 128, {90, 100, 110}), spread_cell(2, 128, {80, 90, 105})});
  EXPECT_TRUE(says(lines, "no difference shown from 1 CPU at this batch (95 % interval 0."))
      << lines[0];
  EXPECT_FALSE(says(lines, "times as fast")) << lines[0];
  EXPECT_FALSE(says(lines, "Fastest")) << lines[0];
  EXPECT_TRUE(says(
      lines,
      "Least time: 90.0 s per epoch on 2 CPUs, batch 128 (no difference shown from 1 other cell)"))
      << lines[0];
  EXPECT_TRUE(says(lines, "No step to more CPUs is shown to pay")) << lines[0];
}

// The step from 1 to 2 CPUs are two hardware threads of a core: it does not pay, but later ones do.
TEST(Headline, TheKneeIsTheLastStepThatPays) {
  const ScalingTable table = make_scaling_table(
      {testing::source({spread_cell(1, 128, {99, 100, 101}), spread_cell(2, 128, {94, 95, 96}),
                        spread_cell(4, 128, {49, 50, 51}), spread_cell(6, 128, {45, 46, 47})})},
      {});
  const Knee knee = knee_of(table.series[0].strong, 128);
  EXPECT_TRUE(knee.known);
  EXPECT_EQ(knee.cpus, 4);
  EXPECT_EQ(knee.next, 6);
  EXPECT_FALSE(knee.open);
  EXPECT_NEAR(knee.gain, std::cbrt(49.0 * 50 * 51 / (45.0 * 46 * 47)), 1e-12);
}

// From 8 to 16 CPUs 30 s become 22 s: 1.36 times, with an interval that reaches above 1.5.
TEST(Headline, AStepThatTheRepeatsLeaveOpenIsNoKnee) {
  const std::vector<double> eight{29, 30, 31};
  const auto with = [&](std::vector<double> sixteen) {
    return headlines_of({spread_cell(4, 128, {59, 60, 61}), spread_cell(8, 128, eight),
                         spread_cell(16, 128, std::move(sixteen))});
  };
  const auto open = with({18, 22, 27});
  EXPECT_TRUE(says(open,
                   "More CPUs paid up to 8 CPUs, and whether the step to 16 CPUs pays is not shown "
                   "by the repeats; on 16 CPUs"))
      << open[0];
  EXPECT_FALSE(says(open, "knee is")) << open[0];
  const auto shown = with({24, 25, 26});
  EXPECT_TRUE(says(shown, "The knee is at 8 CPUs (the step to 16 brought 1.20 of 2.00 times)"))
      << shown[0];
}

// The ratio of the medians is 2.00, that of the geometric means 2.07.
TEST(Headline, TheFactorIsThatOfTheInterval) {
  const auto lines =
      headlines_of({spread_cell(1, 128, {100, 100, 109}), spread_cell(2, 128, {49, 50, 50})});
  const double factor = std::cbrt(100.0 * 100 * 109 / (49.0 * 50 * 50));
  EXPECT_TRUE(says(lines, fmt::format(", {:.2f} times as fast as 1 CPU at this batch", factor)))
      << lines[0];
}

/// The first table of a document's first section.
DocumentTable first_table(const std::vector<CellSource>& sources) {
  const ScalingTable table = make_scaling_table(sources, {});
  return scaling_document({table, sources, std::nullopt, {}, {}}).sections.at(0).tables.at(0);
}

TEST(TimeSaved, IsPositiveWhereTheLargerBatchTakesLessTime) {
  const DocumentTable table = first_table(
      {testing::source({spread_cell(1, 128, {99, 100, 101}), spread_cell(1, 1024, {79, 80, 81}),
                        spread_cell(2, 128, {50, 55, 60}), spread_cell(2, 1024, {54, 58, 63})})});
  const Row& row = table.rows.back();
  EXPECT_EQ(row.label, "time saved by batch 1024 against batch 128 (%)");
  EXPECT_EQ(row.entries[0].text, "+20.0");
  EXPECT_EQ(row.entries[0].note, 0);
  EXPECT_EQ(row.entries[1].text, "-5.5");
  ASSERT_GT(row.entries[1].note, 0);
  EXPECT_EQ(table.notes[static_cast<std::size_t>(row.entries[1].note) - 1],
            "no difference shown: the 95 % interval of the repeats holds 0");
}

TEST(Headline, OneNumberOfCpusAndNoTimes) {
  EXPECT_TRUE(
      says(headlines_of({spread_cell(2, 128, {5, 6, 7})}), "One number of CPUs shows no knee"));
  EXPECT_EQ(headlines_of({testing::absent(1, 128, "no room")}),
            std::vector<std::string>{"No cell has a time."});
}

}  // namespace
}  // namespace cputrain::report
