#include "scaling/simulation/forecast.h"

#include <gtest/gtest.h>

namespace cputrain::simulation {
namespace {

/// An image takes 2 s in a micro-batch of 8 and 1.5 s in one of 16.
CostTable costs() {
  CostTable table;
  table.sizes = {8, 16};
  table.by_active.push_back({.active = 1, .layers = {{"dense", {8, 16}, {8, 8}}}});
  return table;
}

cells::Cell cell(int cpus, std::size_t batch, double seconds) {
  cells::Cell c{.cpus = cpus, .batch = batch, .ranks = cpus};
  c.status = cells::CellStatus::simulated;
  c.seconds_per_epoch = seconds;
  c.limits = {"compute", "because"};
  return c;
}

std::vector<std::string> reasons(std::vector<cells::Cell> cells,
                                 const std::vector<SimulationResult>& results) {
  explain_above_linear(cells, results, costs());
  std::vector<std::string> texts;
  for (const cells::Cell& c : cells) texts.push_back(c.limits.why);
  return texts;
}

TEST(AboveLinear, NamesWhatTheBaseDoesNotDo) {
  const auto texts =
      reasons({cell(1, 128, 100), cell(2, 128, 48), cell(4, 128, 23), cell(8, 128, 13)},
              {{8, {}}, {16, {}}, {8, {"dense"}}, {16, {"dense"}}});
  EXPECT_EQ(texts[0], "because");
  EXPECT_EQ(
      texts[1],
      "because; 104.2 % of the speed of 1 CPU for each as many, because by its costs an image "
      "takes 25.0 % less time in micro-batches of 16 than of 8");
  EXPECT_EQ(texts[2],
            "because; 108.7 % of the speed of 1 CPU for each as many, because the ranks of a node "
            "compute dense together and read its weights once, not once per rank");
  EXPECT_EQ(texts[3], "because");  // 96 %
}

TEST(AboveLinear, FindsThePartOfTheBudgetThatFell) {
  std::vector<cells::Cell> cells{cell(2, 128, 50), cell(4, 128, 24)};
  cells[0].budget = Budget{.forward = 20, .backward = 25, .optimizer = 5};
  cells[1].budget = Budget{.forward = 10, .backward = 12, .optimizer = 2};
  EXPECT_EQ(
      reasons(cells, {{8, {}}, {8, {}}})[1],
      "because; 104.2 % of the speed of 2 CPUs for each as many, because backward takes 2 CPU "
      "seconds less per epoch");
}

// Smaller micro-batches cost more; other rows and cells without a time say nothing about this one.
TEST(AboveLinear, ComparesWithinARowAndNeedsAReason) {
  std::vector<cells::Cell> cells{cell(1, 256, 10), cell(2, 128, 50), cell(4, 128, 24),
                                 cell(1, 128, 1)};
  cells[3].seconds_per_epoch.reset();
  const auto texts = reasons(cells, {{8, {}}, {16, {}}, {8, {}}, {8, {}}});
  EXPECT_EQ(texts[0], "because");
  EXPECT_NE(texts[2].find("104.2 % of the speed of 2 CPUs"), std::string::npos) << texts[2];
  EXPECT_EQ(texts[2].find("micro-batches of"), std::string::npos) << texts[2];
  EXPECT_EQ(texts[3], "because");
}

// In weak scaling the rank's batch makes the row.
TEST(AboveLinear, OfWeakScaling) {
  std::vector<cells::Cell> cells{cell(1, 8, 100), cell(2, 16, 40)};
  EXPECT_EQ(reasons(cells, {{8, {}}, {8, {"dense"}}})[1], "because");
  for (cells::Cell& c : cells) c.batch_per_rank = 8;
  EXPECT_NE(reasons(cells, {{8, {}}, {8, {"dense"}}})[1].find("125.0 %"), std::string::npos);
}

}  // namespace
}  // namespace cputrain::simulation
