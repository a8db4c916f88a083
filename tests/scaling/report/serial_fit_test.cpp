// scaling/report/serial_fit.h: expected figures are closed forms, or of a few lines of Python
// (doubles).
#include "scaling/report/serial_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "scaling/cells/cells.h"
#include "tests/support/scaling_cells.h"

namespace cputrain::report {
namespace {

std::optional<SerialFit> fit(const std::vector<std::pair<double, double>>& times) {
  std::vector<double> cores, seconds;
  for (const auto& [n, s] : times) cores.push_back(n), seconds.push_back(s);
  return fit_serial_and_work(cores, seconds);
}

TEST(SerialFit, IsExactWhereTimesAreSerialAndWork) {
  const auto exact = fit({{1, 900}, {2, 500}, {4, 300}, {8, 200}});
  ASSERT_TRUE(exact);
  EXPECT_NEAR(exact->serial, 100, 1e-9);
  EXPECT_NEAR(exact->work, 800, 1e-9);
  EXPECT_NEAR(exact->largest_deviation, 0, 1e-12);
  EXPECT_EQ(exact->times, 4u);
}

// Relative deviations: as many seconds off at 96 cores weigh more than at one. The unweighted fit
// of the first of these is 105.74 + 769.03 / cores.
TEST(SerialFit, OfThePublishedRows) {
  const auto row128 =
      fit({{1, 878}, {1, 865}, {2, 504}, {4, 303}, {8, 195}, {16, 138}, {32, 134}, {48, 128}});
  ASSERT_TRUE(row128);
  EXPECT_NEAR(row128->serial, 104.44319798592025, 1e-9);
  EXPECT_NEAR(row128->work, 767.944412090592, 1e-9);
  EXPECT_NEAR(row128->largest_deviation, 0.10463567928682783, 1e-12);
  const auto row1024 = fit({{2, 389}, {4, 244}, {8, 156}, {16, 122}, {32, 109}, {48, 97}});
  ASSERT_TRUE(row1024);
  EXPECT_NEAR(row1024->serial, 85.66226459936823, 1e-9);
  EXPECT_NEAR(row1024->work, 607.1505962758099, 1e-9);
  EXPECT_NEAR(row1024->largest_deviation, 0.04003925933039179, 1e-12);
}

// 1000 / cores - 10: what falls below any plateau is all work.
TEST(SerialFit, TheSerialPartIsNeverBelowNothing) {
  const auto all_work = fit({{1, 990}, {2, 490}, {4, 240}, {8, 115}});
  ASSERT_TRUE(all_work);
  EXPECT_EQ(all_work->serial, 0);
  EXPECT_NEAR(all_work->work, 960.9645842818576, 1e-9);
  EXPECT_NEAR(all_work->largest_deviation, 0.044526722045497374, 1e-12);
}

TEST(SerialFit, NeedsFourTimesOnThreeNumbersOfCores) {
  EXPECT_FALSE(fit({}));
  EXPECT_FALSE(fit({{1, 900}, {2, 500}, {4, 300}}));
  EXPECT_FALSE(fit({{1, 900}, {1, 890}, {2, 500}, {2, 510}}));
  EXPECT_TRUE(fit({{1, 900}, {1, 890}, {2, 500}, {4, 300}}));
  EXPECT_FALSE(fit({{1, 100}, {2, 200}, {4, 300}, {8, 400}}));  // more cores take longer
  EXPECT_FALSE(fit({{1, 900}, {2, 0}, {4, 300}, {8, 200}}));
  EXPECT_FALSE(fit({{0, 900}, {2, 500}, {4, 300}, {8, 200}}));
  EXPECT_FALSE(fit({{1, std::nan("")}, {2, 500}, {4, 300}, {8, 200}}));
}

TEST(SerialFit, CoresHaveOneOrSeveralCpus) {
  const int cores[][3] = {{1, 2, 1}, {2, 2, 1}, {3, 2, 2}, {96, 2, 48}, {5, 1, 5}, {9, 4, 3}};
  for (const auto& [cpus, each, expected] : cores) EXPECT_EQ(cells::cores_of(cpus, each), expected);
}

/// 10 s + 90 / cores.
std::vector<cells::Cell> row(const std::vector<std::pair<int, int>>& cpus_and_cores,
                             std::size_t batch,
                             cells::CellStatus status = cells::CellStatus::measured) {
  std::vector<cells::Cell> cells;
  for (const auto& [cpus, cores] : cpus_and_cores) {
    cells.push_back(testing::cell(cpus, 1, batch, 10 + 90.0 / cores, status));
  }
  return cells;
}

void expect_ten_and_ninety(const FittedRow& fitted) {
  EXPECT_NEAR(fitted.fit.serial, 10, 1e-9);
  EXPECT_NEAR(fitted.fit.work, 90, 1e-9);
}

TEST(FittedRows, OursAreByTheCoresThatTheyRanOn) {
  // Ranks fill four cores before their hardware threads.
  CellSource cores = testing::source(row({{1, 1}, {2, 2}, {4, 4}, {8, 4}}, 128));
  cores.table.machine.cores = 4;
  cores.table.machine.hardware_threads = 8;
  const ScalingTable measured = make_scaling_table({cores}, {});
  auto rows = fitted_rows(measured, std::nullopt);
  ASSERT_EQ(rows.size(), 1u);
  expect_ten_and_ninety(rows[0]);
  EXPECT_EQ(rows[0].series, &measured.series[0]);
  EXPECT_EQ(rows[0].batch, 128u);
  // A machine that grows: two CPUs a core.
  CellSource grows =
      testing::source(row({{1, 1}, {2, 1}, {4, 2}, {8, 4}}, 64, cells::CellStatus::simulated));
  grows.table.machine = {.platform = "p", .cores = 48, .hardware_threads = 96, .cpus_per_core = 2};
  const ScalingTable simulated = make_scaling_table({grows}, {});
  rows = fitted_rows(simulated, std::nullopt);
  ASSERT_EQ(rows.size(), 1u);
  expect_ten_and_ninety(rows[0]);
  EXPECT_EQ(rows[0].cpus_per_core, 2);
  EXPECT_EQ(rows[0].status, cells::CellStatus::simulated);
}

TEST(FittedRows, LeaveOutDevicesSeveralMachinesAndWeakScaling) {
  const std::vector<std::pair<int, int>> even{{1, 1}, {2, 2}, {4, 4}, {8, 8}};
  const auto count = [&](const std::function<void(CellSource&)>& change) {
    CellSource one = testing::source(row(even, 128));
    change(one);
    return fitted_rows(make_scaling_table({one}, {}), std::nullopt).size();
  };
  EXPECT_EQ(count([](CellSource&) {}), 1u);  // nothing is known of the machine: CPUs are cores
  EXPECT_EQ(count([](CellSource& s) {
              for (cells::Cell& c : s.table.cells) c.backend = "cuda";
            }),
            0u);
  EXPECT_EQ(
      count([](CellSource& s) { s.table.machine.cores = s.table.machine.hardware_threads = 4; }),
      0u);
  EXPECT_EQ(count([](CellSource& s) {
              for (cells::Cell& c : s.table.cells) c.batch_per_rank = 8;
            }),
            0u);
}

TEST(FittedRows, PublishedOnesAreReadBothWays) {
  const std::optional<ReferenceTable> published = parse_reference(
      "cpus,batch,seconds_per_epoch\n1,128,100\n2,128,100\n4,128,55\n8,128,32.5\n1,256,\n2,256,"
      "100\n"
      "4,256,55\n8,256,32.5\n",
      "x");
  const auto rows = fitted_rows({}, published);
  ASSERT_EQ(rows.size(), 2u);  // batch 256 has three times
  EXPECT_EQ(rows[0].cpus_per_core, 2);
  expect_ten_and_ninety(rows[0]);
  EXPECT_NEAR(rows[0].fit.largest_deviation, 0, 1e-12);
  EXPECT_EQ(rows[1].cpus_per_core, 1);
  EXPECT_GT(rows[1].fit.largest_deviation, 0.1);
}

}  // namespace
}  // namespace cputrain::report
