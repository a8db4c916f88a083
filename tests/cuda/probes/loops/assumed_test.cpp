#include "cuda/probes/loops/assumed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

namespace cputrain::cuda::probes {
namespace {

TEST(CyclesBeside, AreThoseOfTheTableAndBetweenThem) {
  EXPECT_DOUBLE_EQ(cycles_beside(0), 6.07);
  EXPECT_DOUBLE_EQ(cycles_beside(2), 8.00);
  EXPECT_DOUBLE_EQ(cycles_beside(16), 21.53);
  EXPECT_DOUBLE_EQ(cycles_beside(1.5), (6.25 + 8.00) / 2);
  EXPECT_DOUBLE_EQ(cycles_beside(10), (13.55 + 17.54) / 2);
}

/// By hand: a tile of 128 x 128 has 138 others beside 128 products of a warp; its 4 warps read 64
/// KiB a step, and 32 KiB are copied.
TEST(LoopBounds, OfALargeTile) {
  const LoopBounds bounds = assumed_bounds(kTile128x128, 98304, 512);
  EXPECT_NEAR(bounds.issue, 6.25 + 10.0 / 128 * 1.75, 1e-9);
  EXPECT_NEAR(bounds.shared, 98304.0 / 128 * 0.82 / 128, 1e-9);
  EXPECT_EQ(bounds.least(), bounds.issue);
  EXPECT_EQ(bounds.most(), bounds.issue + bounds.shared);
}

/// The table has instructions of the loop, those that warps share out, and products.
TEST(Instructions, AreThoseOfTheTableOfKernels) {
  std::ifstream table(CPUTRAIN_INSTRUCTIONS);
  const std::regex forward(R"(\s*\d+\s+(\d+)\s+0\s+\S+\s+(\d+)\s.*)"
                           R"(gemm<(?:Bf16|Tf32)Numbers,GemmTile<(\d+),(\d+),.*Forward>.*)");
  std::string line, section;
  int found = 0;
  while (std::getline(table, line)) {
    if (line.starts_with("sm_")) section = line;
    std::smatch match;
    if (!section.starts_with("sm_90a") || !std::regex_match(line, match, forward)) continue;
    const int rows = std::stoi(match[3]), columns = std::stoi(match[4]);
    const auto* const tile = std::ranges::find_if(kTiles, [&](const TileShape& shape) {
      return shape.rows == rows && shape.columns == columns;
    });
    ASSERT_NE(tile, std::end(kTiles)) << line;
    EXPECT_EQ(instructions_of_loop(*tile).all, std::stoi(match[1])) << line;
    EXPECT_EQ(instructions_of_loop(*tile).products, std::stoi(match[2])) << line;
    ++found;
  }
  EXPECT_EQ(found, 2 * 6);  // tiles in two precisions
}

TEST(Figures, AreThoseOfTheModel) {
  std::ifstream file(CPUTRAIN_HARDWARE);
  const auto of_all = nlohmann::json::parse(file).at("of_all");
  const auto& table = of_all.at("hmma_cycles").at("value");
  ASSERT_EQ(table.size(), kCyclesBeside.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(table[i][0].get<double>(), kCyclesBeside[i].others);
    EXPECT_EQ(table[i][1].get<double>(), kCyclesBeside[i].cycles);
  }
  EXPECT_EQ(of_all.at("shared_bytes").at("value").get<double>(), kSharedBytes);
  EXPECT_EQ(of_all.at("shared_counted").at("value").get<double>(), kSharedCounted);
}

}  // namespace
}  // namespace cputrain::cuda::probes
