// The figure of seconds by CPUs as gnuplot gets it.

#include "scaling/report/seconds_figure.h"

#include <gtest/gtest.h>

#include "scaling/report/forms/escapes.h"
#include "tests/support/scaling_cells.h"

namespace cputrain::report {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string script_of(std::vector<CellSource> sources,
                      const std::optional<ReferenceTable>& reference = std::nullopt) {
  return gnuplot_script(make_scaling_table(sources, {}), reference, "x.svg");
}

TEST(SecondsFigure, TextsAreTextsWhateverTheyHold) {
  EXPECT_EQ(gnuplot_text("it's `reboot` \"x\"\n$y @z \\"), "'it''s `reboot` \"x\" $y @z \\'");
  CellSource source = testing::source({testing::cell(1, 1, 128, 10)});
  source.table.model = "x'\nsystem('touch /tmp/x'); print 'y";
  const std::string script = script_of({source});
  EXPECT_TRUE(holds(script, "\nset title 'Seconds per epoch, x''\\nsystem(''touch /tmp/x'');"))
      << script;
  EXPECT_FALSE(holds(script, "\nsystem"));
}

TEST(SecondsFigure, MeasuredIsFilledSimulatedHollow) {
  const auto simulated = cells::CellStatus::simulated;
  CellSource there = testing::source(
      {testing::cell(1, 1, 128, 90, simulated), testing::cell(4, 1, 128, 25, simulated)}, "b");
  there.table.machine.platform = "p";
  const std::string script = script_of(
      {testing::source({testing::cell(1, 1, 128, 100), testing::cell(2, 1, 128, 60)}), there},
      parse_reference("cpus,batch,seconds_per_epoch\n1,128,878\n2,128,865\n", "paper.csv"));
  EXPECT_TRUE(holds(script, "pt 7 ps 0.8 lw 2 dt 1 lc rgb '#1d2129' title 'measured'")) << script;
  EXPECT_TRUE(holds(script, "pt 4 ps 0.8 lw 1.3 dt (10,4) lc rgb '#1d2129' title 'simulated'"))
      << script;
  EXPECT_TRUE(holds(script, "title 'published'") && holds(script, "title 'ideal'")) << script;
  EXPECT_TRUE(holds(script, "[1:*] 100 / x with lines"));
  EXPECT_TRUE(holds(script, "[1:*] 90 / x with lines"));
  EXPECT_TRUE(holds(script, "set xtics (1, 2, 4)"));
}

TEST(SecondsFigure, ThereIsNoneWithoutTimesOfAGlobalBatch) {
  EXPECT_EQ(script_of({testing::source({testing::absent(1, 128, "no room")})}), "");
}

}  // namespace
}  // namespace cputrain::report
