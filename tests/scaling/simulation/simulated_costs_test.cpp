#include "scaling/simulation/calibrate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

namespace cputrain::simulation {
namespace {

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
