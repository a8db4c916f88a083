#include "training/run/run_folder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::training {
namespace {

/// A folder in which runs start, save and are killed.
class OverwrittenRun : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name) << text;
  }
  std::string at(const std::string& name) const {
    const std::filesystem::path file = folder_.path() / name;
    return std::filesystem::exists(file) ? testing::text_of(file) : "none";
  }
  testing::TemporaryFolder folder_;
};

TEST_F(OverwrittenRun, WeightsStayHoweverManyRunsAreKilled) {
  put(kWeightsName, "first");
  for (int killed = 0; killed < 3; ++killed) clear_run_folder(folder_.path());
  EXPECT_EQ(at(kWeightsName), "first");
  EXPECT_TRUE(holds_run(folder_.path()));  // so that --out without --overwrite is refused
}

TEST_F(OverwrittenRun, FiguresOfTheEarlierRunGo) {
  for (const char* name : {kProfileName, kLimitsName, "mlperf.log"}) put(name, "x");
  put("train/events.out.tfevents.1.host.v2", "x");
  put("notes.txt", "mine");
  clear_run_folder(folder_.path());
  for (const char* name : {kProfileName, kLimitsName, "mlperf.log"}) {
    EXPECT_EQ(at(name), "none") << name;
  }
  EXPECT_EQ(at("notes.txt"), "mine");
}

TEST_F(OverwrittenRun, AFolderThatHoldsNothingHoldsNoRun) {
  EXPECT_FALSE(holds_run(folder_.path()));
  put("config.json", "{}");
  EXPECT_FALSE(holds_run(folder_.path()));
  put("metrics.jsonl", "");
  EXPECT_TRUE(holds_run(folder_.path()));
}

}  // namespace
}  // namespace cputrain::training
