#include "scaling/cells/device_rates.h"

#include <gtest/gtest.h>

namespace cputrain::cells {
namespace {

/// Two H100 that train 10,000 images a second with 200,000 GFLOP/s.
Cell two_gpus(const std::string& precision) {
  Cell c;
  c.backend = "cuda";
  c.cpus = c.ranks = c.gpus = 2;
  c.device = "NVIDIA H100 80GB HBM3";
  c.batch = 100;
  c.status = CellStatus::scaled;
  c.seconds_per_epoch = 2;
  c.images_per_second = 10'000;
  c.gflops = 200'000;
  c.fma_gflops = 500'000;
  c.triad_gbs = 6000;
  c.axes = {{"precision", precision}};
  return c;
}

CellTable table_of_maps() {
  CellTable table;
  table.parameters = 1e6;
  table.maps_per_image = 5e6;
  return table;
}

TEST(DeviceRatesTest, SharesAreOfBothRates) {
  EXPECT_DOUBLE_EQ(*chip_share(table_of_maps(), two_gpus("float")), 200'000 / (2 * 494'700.));
  // A second: 10,000 images whose maps move five times, 100 steps of 24 bytes of each parameter on
  // each of two GPUs.
  const double bytes = 1e4 * 5 * 4 * 5e6 + 100 * 2 * 24 * 1e6;
  EXPECT_DOUBLE_EQ(*counted_bytes(table_of_maps(), two_gpus("float")), bytes);
  EXPECT_DOUBLE_EQ(*memory_share(table_of_maps(), two_gpus("float")), bytes / 6e12);
}

TEST(DeviceRatesTest, NumbersOfTheCellSayWhichRate) {
  const CellTable table = table_of_maps();
  EXPECT_DOUBLE_EQ(*chip_share(table, two_gpus("bf16")), 200'000 / (2 * 989'400.));
  EXPECT_DOUBLE_EQ(*chip_share(table, two_gpus("exact")), 3 * 200'000 / (2 * 494'700.));
  EXPECT_FALSE(chip_share(table, two_gpus("double")));
  EXPECT_DOUBLE_EQ(*counted_bytes(table, two_gpus("bf16")), 1e4 * 5 * 2 * 5e6 + 100 * 2 * 24 * 1e6);
  // Nothing said is TF32; the table says it as well as the cell.
  Cell plain = two_gpus("default");
  EXPECT_DOUBLE_EQ(*chip_share(table, plain), 200'000 / (2 * 494'700.));
  plain.axes.clear();
  CellTable of_bf16 = table;
  of_bf16.options = {{"precision", "bf16"}};
  EXPECT_DOUBLE_EQ(*chip_share(of_bf16, plain), 200'000 / (2 * 989'400.));
}

TEST(DeviceRatesTest, NothingIsGuessed) {
  CellTable table = table_of_maps();
  Cell cell = two_gpus("float");
  cell.device = "NVIDIA H100 80GB HBM3 and NVIDIA H200";
  EXPECT_FALSE(chip_share(table, cell));
  cell.fma_gflops.reset();
  cell.triad_gbs = 0;
  EXPECT_FALSE(memory_share(table, cell));
  table.options = {{"freeze", "until=conv2d_3"}};
  EXPECT_FALSE(counted_bytes(table, two_gpus("float")));
  table.options.clear();
  table.maps_per_image = 0;  // a table of an earlier version
  EXPECT_FALSE(counted_bytes(table, two_gpus("float")));
  cell = two_gpus("float");
  cell.backend = "cpu";
  EXPECT_FALSE(chip_share(table_of_maps(), cell));
  EXPECT_FALSE(memory_share(table_of_maps(), cell));
}

TEST(DeviceRatesTest, ChipsHaveNamesOfTheDriver) {
  EXPECT_DOUBLE_EQ(chip_rates("NVIDIA H200")->memory_gbs, 4800);
  EXPECT_DOUBLE_EQ(chip_rates("NVIDIA A100-SXM4-80GB")->bf16_gflops, 312'000);
  EXPECT_FALSE(chip_rates("H200"));
  EXPECT_FALSE(chip_rates(""));
}

}  // namespace
}  // namespace cputrain::cells
