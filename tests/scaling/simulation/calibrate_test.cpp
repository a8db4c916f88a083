// Lines through measured costs, and what is measured how long.
#include "scaling/simulation/calibrate.h"

#include <gtest/gtest.h>
#include <filesystem>
#include <set>

namespace cputrain::simulation {
namespace {

TEST(FitLine, IsExactWherePointsLieOnALine) {
  const Line line = fit_line({1, 2, 8}, {5, 7, 19});
  EXPECT_NEAR(line.fixed, 3, 1e-12);
  EXPECT_NEAR(line.each, 2, 1e-12);
}

// Weights 1, 1/4, 1/4: sums 3/2, 9/4 (x), 2 (y), 17/4 (x^2), 7/2 (xy).
TEST(FitLine, HasTheLeastRelativeErrors) {
  const Line line = fit_line({1, 2, 3}, {1, 2, 2});
  EXPECT_NEAR(line.each, 4.0 / 7, 1e-12);
  EXPECT_NEAR(line.fixed, 10.0 / 21, 1e-12);
}

TEST(FitLine, NeverFallsAndNeverBeginsBelowZero) {
  const Line through_zero = fit_line({1, 2}, {1, 3});  // (1 + 2/3) / (1 + 4/9)
  EXPECT_EQ(through_zero.fixed, 0);
  EXPECT_NEAR(through_zero.each, 15.0 / 13, 1e-12);
  const Line level = fit_line({1, 2}, {4, 2});  // (1/4 + 1/2) / (1/16 + 1/4)
  EXPECT_EQ(level.each, 0);
  EXPECT_NEAR(level.fixed, 2.4, 1e-12);
}

TEST(Interpolation, GoesStraightBetweenPointsAndOnBeyondThem) {
  const std::vector<int> at{1, 2, 4};
  const std::vector<double> values{10, 12, 20};
  EXPECT_DOUBLE_EQ(interpolate(at, values, 1), 10);
  EXPECT_DOUBLE_EQ(interpolate(at, values, 2), 12);
  EXPECT_DOUBLE_EQ(interpolate(at, values, 3), 16);
  const double slope = fit_line(at, values).each;
  EXPECT_GT(slope, 0);
  EXPECT_DOUBLE_EQ(interpolate(at, values, 8), 20 + 4 * slope);
  EXPECT_DOUBLE_EQ(interpolate({2, 4}, {12, 16}, 1), 12 - fit_line({2, 4}, {12, 16}).each);
  // A measurement that was disturbed makes no larger number of images cheaper.
  EXPECT_GE(interpolate({1, 2, 4}, {10, 40, 20}, 32), 20);
}

TEST(Calibration, MeasuresTheTeamsThatAMachineHas) {
  const auto text = [](int cores, int hardware_threads) {
    std::string all;
    for (const Team& team : teams_of(cores, hardware_threads)) {
      all += std::to_string(team.ranks) + "x" + std::to_string(team.threads) + " ";
    }
    return all;
  };
  EXPECT_EQ(text(1, 1), "1x1 ");
  EXPECT_EQ(text(1, 2), "1x1 2x1 ");
  EXPECT_EQ(text(2, 2), "1x1 2x1 1x2 ");
  EXPECT_EQ(text(48, 96), "1x1 4x1 16x1 48x1 96x1 1x48 ");
}

TEST(Calibration, SaysHowLongItGoesOn) {
  EXPECT_EQ(calibration_progress(10, 40, 300), "Measured for 40 s, about 260 s to go");
  // Slow rounds: twelve take longer than what was asked for.
  EXPECT_EQ(calibration_progress(4, 40, 60), "Measured for 40 s, about 80 s to go");
  EXPECT_EQ(calibration_progress(11, 110, 60), "Measured for 110 s, about 10 s to go");
  EXPECT_EQ(calibration_progress(12, 120, 60),
            "Measured for 120 s; measuring again what the host disturbed, which took CPU time for "
            "others");
}

std::string name_with(const std::string& data) {
  training::TrainingFlags flags;
  flags.data = data;
  return costs_file_name(flags, placement::Machine{}, "network");
}

// Zeros in images decide how long kernels take; made-up ones are alike, however many.
TEST(CostsFile, IsOfTheImagesThatWereMeasured) {
  EXPECT_EQ(name_with(""), name_with("synthetic:1000"));
  EXPECT_EQ(name_with(""), name_with("synthetic"));
  EXPECT_EQ(name_with("images"), name_with("./none/../images")) << "one folder";
  EXPECT_EQ(name_with("images"), name_with((std::filesystem::current_path() / "images").string()));
  const std::set<std::string> names{name_with(""), name_with("images"), name_with("others"),
                                    name_with("synthetic-dogs")};
  EXPECT_EQ(names.size(), 4u);
}

TEST(CostsFile, IsOfTheMachineAndTheNetwork) {
  const training::TrainingFlags flags;
  placement::Machine other;
  other.cpu_model = "another";
  const std::string here = costs_file_name(flags, placement::Machine{}, "network");
  EXPECT_NE(here, costs_file_name(flags, other, "network"));
  EXPECT_NE(here, costs_file_name(flags, placement::Machine{}, "another network"));
}

}  // namespace
}  // namespace cputrain::simulation
