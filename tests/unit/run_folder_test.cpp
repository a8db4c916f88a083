#include "cli/run_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/error.h"
#include "support/temporary_folder.h"

namespace cputrain {
namespace {

/// A folder in which runs start, save and are killed.
class OverwrittenRun : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name) << text;
  }
  std::string at(const std::string& name) const {
    std::ostringstream text;
    std::ifstream file(folder_.path() / name);
    if (!file) return "none";
    text << file.rdbuf();
    return text.str();
  }
  /// What a run does to its folder before its first step, and at its end.
  bool start() const { return clear_run_folder(folder_.path()); }
  void save(const std::string& weights) {
    put(kWeightsName, weights);
    drop_previous_weights(folder_.path());
  }

  TemporaryFolder folder_;
};

TEST_F(OverwrittenRun, WeightsStayUntilThereAreNewOnes) {
  save("first");
  EXPECT_TRUE(start());
  EXPECT_EQ(at(kWeightsName), "none");  // the new run's figures are not theirs
  EXPECT_EQ(at(kPreviousWeightsName), "first");
  save("second");
  EXPECT_EQ(at(kWeightsName), "second");
  EXPECT_EQ(at(kPreviousWeightsName), "none");
}

TEST_F(OverwrittenRun, ManyKilledRunsDoNotLoseThem) {
  save("first");
  for (int killed = 0; killed < 3; ++killed) EXPECT_TRUE(start());
  EXPECT_EQ(at(kPreviousWeightsName), "first");
  EXPECT_TRUE(holds_run(folder_.path()));  // so that --out without --overwrite is refused
}

// Killed between the rename of the new weights and the end of the old ones: the newer ones stay.
TEST_F(OverwrittenRun, KilledBehindSavingKeepsTheNewOnes) {
  save("first");
  start();
  put(kWeightsName, "second");
  EXPECT_TRUE(start());
  EXPECT_EQ(at(kPreviousWeightsName), "second");
  EXPECT_EQ(at(kWeightsName), "none");
}

TEST_F(OverwrittenRun, FiguresOfTheEarlierRunGo) {
  for (const char* name : {kProfileName, kLimitsName, kMlperfName, "dawnbench.tsv"}) put(name, "x");
  put("train/events.out.tfevents.1.host.v2", "x");
  put("notes.txt", "mine");
  EXPECT_FALSE(start());  // there were no weights
  for (const char* name : {kProfileName, kLimitsName, kMlperfName, "dawnbench.tsv"}) {
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
}  // namespace cputrain
