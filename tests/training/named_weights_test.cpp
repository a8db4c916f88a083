#include "training/weights/named_weights.h"

#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/folder.h"
#include "core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"
#include "training/run/run_folder.h"

namespace cputrain::training {
namespace {

/// A run's files, which nobody reads here.
class RunWeights : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text = "x") {
    std::filesystem::create_directories(at(name).parent_path());
    std::ofstream(at(name)) << text;
  }
  void put_checkpoint(std::uint64_t step) {
    checkpoint::Writer writer(folder_.path(), step);
    for (const char* file : {checkpoint::kModelName, checkpoint::kOptimizerName,
                             checkpoint::kRanksName, checkpoint::kStateName})
      std::ofstream(writer.folder() / file) << "x";
    writer.commit();
  }
  void finish() { put("metrics.jsonl", "{\"type\":\"summary\",\"outcome\":\"finished\"}\n"); }

  std::filesystem::path at(const std::string& name) const { return folder_.path() / name; }
  std::filesystem::path found() const { return find_weights(folder_.path()).file; }

  testing::TemporaryFolder folder_;
};

TEST_F(RunWeights, AFileStandsForItself) {
  const NamedWeights named = find_weights("nowhere/w.safetensors");
  EXPECT_EQ(named.file, "nowhere/w.safetensors");
  EXPECT_EQ(named.chosen, "");
  EXPECT_EQ(named.run, "");
  put(kWeightsName), put(kConfigName, "{}");
  EXPECT_EQ(find_weights(at(kWeightsName)).run, folder_.path());
}

TEST_F(RunWeights, BestGoBeforeLastAndTheseBeforeCheckpoints) {
  put(kConfigName, "{}");
  put_checkpoint(7), put_checkpoint(21);
  EXPECT_EQ(found(), at(checkpoint::name_of(21)) / checkpoint::kModelName);
  put(kWeightsName);  // of an earlier run that this one is to replace
  EXPECT_EQ(found(), at(checkpoint::name_of(21)) / checkpoint::kModelName);
  finish();
  EXPECT_EQ(found(), at(kWeightsName));
  put(kBestName);
  EXPECT_EQ(found(), at(kBestName));
}

TEST_F(RunWeights, ACheckpointThatIsNotWholeIsPassedOver) {
  put(kConfigName, "{}");
  put_checkpoint(7), put_checkpoint(21);
  std::filesystem::remove(at(checkpoint::name_of(21)) / checkpoint::kManifestName);
  EXPECT_EQ(found(), at(checkpoint::name_of(7)) / checkpoint::kModelName);
  std::ofstream(at(checkpoint::name_of(7)) / checkpoint::kModelName) << "y";
  testing::refused(ExitCode::data, [&] {
    found();  // what the manifest says of the other is not true any more
  });
}

TEST_F(RunWeights, ACheckpointKnowsItsRun) {
  put(kConfigName, "{}");
  put_checkpoint(7);
  const auto folder = at(checkpoint::name_of(7));
  for (const std::filesystem::path& named :
       {folder, folder / "", folder / checkpoint::kModelName}) {
    const NamedWeights found = find_weights(named);
    EXPECT_EQ(found.file, folder / checkpoint::kModelName);
    EXPECT_TRUE(std::filesystem::equivalent(found.run, folder_.path()));
  }
}

TEST_F(RunWeights, DataIsWhatConfigSays) {
  EXPECT_FALSE(data_of_run(folder_.path()));
  for (const char* damaged : {"", "[1]", "{", "{}", "7"}) {
    put(kConfigName, damaged);
    EXPECT_FALSE(data_of_run(folder_.path())) << damaged;
  }
  put(kConfigName, R"({"data": "/d", "limit-val": "12", "balanced": "true"})");
  const auto data = data_of_run(folder_.path());
  ASSERT_TRUE(data);
  EXPECT_EQ(data->spec, "/d");
  EXPECT_EQ(data->limit_validation, 12u);
  EXPECT_TRUE(data->balanced);
  EXPECT_FALSE(data->allow_empty_classes);
  put(kConfigName, R"({"data": "/d", "limit-val": "0"})");  // it trained without evaluation
  EXPECT_FALSE(data_of_run(folder_.path())->limit_validation);
}

}  // namespace
}  // namespace cputrain::training
