// The figure of seconds by CPUs.

#include "scaling/report/scaling_document.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/scaling_cells.h"

namespace cputrain::report {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string svg_of(std::vector<CellSource> sources,
                   const std::optional<ReferenceTable>& reference = std::nullopt) {
  return seconds_svg(make_scaling_table(sources, {}), reference);
}

TEST(SecondsFigure, TextsAreTextsWhateverTheyHold) {
  CellSource source = testing::source({testing::cell(1, 1, 128, 10)});
  source.table.model = "x</text><script>\n\"&";
  const std::string svg = svg_of({source});
  EXPECT_TRUE(holds(svg, ">Seconds per epoch, x&lt;/text&gt;&lt;script&gt;")) << svg;
  EXPECT_FALSE(holds(svg, "<script"));
}

TEST(SecondsFigure, MeasuredIsFilledSimulatedHollow) {
  const auto simulated = cells::CellStatus::simulated;
  CellSource there = testing::source(
      {testing::cell(1, 1, 128, 90, simulated), testing::cell(4, 1, 128, 25, simulated)}, "b");
  there.table.machine.platform = "p";
  const std::string svg = svg_of(
      {testing::source({testing::cell(1, 1, 128, 100), testing::cell(2, 1, 128, 60)}), there},
      parse_reference("cpus,batch,seconds_per_epoch\n1,128,878\n2,128,865\n", "paper.csv"));
  for (const char* name : {">batch 128<", ">measured<", ">simulated<", ">published<", ">ideal<"}) {
    EXPECT_TRUE(holds(svg, name)) << name << "\n" << svg;
  }
  EXPECT_TRUE(holds(svg, "fill=\"#0072b2\" stroke=\"#0072b2\""));  // of batch 128
  EXPECT_TRUE(holds(svg, "fill=\"#ffffff\" stroke=\"#0072b2\""));
  for (const char* tick : {">1<", ">2<", ">4<"}) EXPECT_TRUE(holds(svg, tick)) << tick;
}

// Axes are from 1 / 1.08 to 4 * 1.08 CPUs and from 10 / 1.15 to 40 * 1.15 seconds, logarithmic:
// 2 CPUs and 20 seconds are in the middle of the frame, which ends at 599.2 where names are short.
TEST(SecondsFigure, PointsLieWhereTheirFiguresAre) {
  const std::string svg = svg_of({testing::source(
      {testing::cell(1, 1, 128, 40), testing::cell(2, 1, 128, 20), testing::cell(4, 1, 128, 10)})});
  EXPECT_TRUE(holds(svg, "H599.2")) << svg;
  EXPECT_TRUE(holds(svg, "L331.6 234.0L")) << svg;
}

TEST(SecondsFigure, ThereIsNoneWithoutTimesOfAGlobalBatch) {
  EXPECT_EQ(svg_of({testing::source({testing::absent(1, 128, "no room")})}), "");
}

}  // namespace
}  // namespace cputrain::report
