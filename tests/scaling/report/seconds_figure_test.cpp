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
// 2 CPUs and 20 seconds are in the middle of the frame.
TEST(SecondsFigure, PointsLieWhereTheirFiguresAre) {
  const std::string svg = svg_of({testing::source(
      {testing::cell(1, 1, 128, 40), testing::cell(2, 1, 128, 20), testing::cell(4, 1, 128, 10)})});
  EXPECT_TRUE(holds(svg, "H780")) << svg;
  EXPECT_TRUE(holds(svg, "L422.0 234.0L")) << svg;
}

/// A cell of one GPU.
CellSource gpu(double seconds, const std::string& device) {
  cells::Cell cell = testing::cell(1, 1, 128, seconds);
  cell.backend = "cuda";
  cell.gpus = 1;
  cell.device = device;
  return testing::source({cell}, device);
}

TEST(SecondsFigure, OneGpuIsALevelLineToTheEndOfTheAxisOfCpus) {
  const CellSource cpus =
      testing::source({testing::cell(1, 1, 128, 40), testing::cell(4, 1, 128, 10)});
  const std::string svg = svg_of({cpus, gpu(20, "H")});
  // 20 s are half-way between 10 / 1.15 and 40 * 1.15 s, and one GPU stands where one CPU does.
  EXPECT_TRUE(holds(svg, "M99.8 234.0H780\" fill=\"none\" stroke=\"#0072b2\"")) << svg;
  EXPECT_TRUE(holds(svg, ">CPUs or GPUs<"));
  EXPECT_FALSE(holds(svg_of({gpu(20, "H")}), "H780\" fill=\"none\" stroke=\"#0072b2\""));
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

/// On machines whose names begin alike.
std::vector<CellSource> many(int machines) {
  std::vector<CellSource> sources;
  for (int i = 0; i < machines; ++i) {
    sources.push_back(
        testing::source({testing::cell(1, 1, 128, 40 + i), testing::cell(2, 1, 128, 21 + i)}, "m"));
    sources.back().table.machine.cpu =
        "a processor whose name is long and whose end tells it apart, number " + std::to_string(i);
  }
  return sources;
}

TEST(SecondsFigure, DrawsEverySeriesWithItsWholeName) {
  std::vector<CellSource> sources = many(9);
  sources.push_back(gpu(20, "H"));
  const std::string svg = svg_of(sources);
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(count(svg, "tells it apart, number " + std::to_string(i)), 1) << i << "\n" << svg;
  }
  EXPECT_EQ(count(svg, "stroke-dasharray=\"14 3\""), 2 * 2);  // a line and a sample of two series
  EXPECT_FALSE(holds(svg, "Not drawn"));
}

TEST(SecondsFigure, NamesTheSeriesThatHaveNoRoom) {
  std::vector<CellSource> sources = many(17);
  sources.push_back(gpu(20, "H"));
  const std::string svg = svg_of(sources);
  EXPECT_TRUE(holds(svg, "Not drawn, see the tables: "));
  EXPECT_TRUE(holds(svg, "number 16"));
  EXPECT_TRUE(holds(svg, "9 3 2 3")) << "GPUs are drawn first";
}

TEST(SecondsFigure, ThereIsNoneWithoutTimesOfAGlobalBatch) {
  EXPECT_EQ(svg_of({testing::source({testing::absent(1, 128, "no room")})}), "");
}

}  // namespace
}  // namespace cputrain::report
