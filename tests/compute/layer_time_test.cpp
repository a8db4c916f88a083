#include "compute/layer_time.h"

#include <gtest/gtest.h>

namespace cputrain::compute {
namespace {

TEST(LayerTime, DensityIsWeightedByWorkOfThoseThatCountedIt) {
  EXPECT_EQ(density_of({}), std::nullopt);
  EXPECT_EQ(density_of({{.name = "a", .macs = 9}}), std::nullopt);
  EXPECT_EQ(density_of({{.name = "a", .macs = 0, .density = 0.5}}), std::nullopt);
  EXPECT_EQ(density_of({{.name = "a", .macs = 1, .density = 0.0},
                        {.name = "b", .macs = 3, .density = 1.0},
                        {.name = "c", .macs = 9}}),
            0.75);
}

}  // namespace
}  // namespace cputrain::compute
