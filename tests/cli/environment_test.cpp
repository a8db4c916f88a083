#include "cli/command_line.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/parsing.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::cli {
namespace {

TEST(CommandLine, AFlagGoesBeforeTheEnvironmentAndThatBeforeTheFile) {
  const testing::TemporaryFolder folder;
  const auto path = (folder.path() / "config.json").string();
  std::ofstream(path) << R"({"batch": 8, "epochs": "3", "image_size": 96, "overwrite": true})";
  const Options config = options_of({"--config", path, "--batch", "32"},
                                    {{"CPUTRAIN_BATCH", "16"}, {"CPUTRAIN_EPOCHS", "5"}});
  EXPECT_EQ(config.batch, 32u);
  EXPECT_EQ(config.epochs, 5);
  EXPECT_EQ(config.image_size, 96);
  EXPECT_TRUE(config.overwrite);
}

TEST(CommandLine, AConfigOfAnOlderRunIsStillRead) {
  const testing::TemporaryFolder folder;
  const auto path = (folder.path() / "config.json").string();
  std::ofstream(path) << R"({"stall-timeout": 50.0, "start_timeout": "5", "timeline": "/t.json",
                             "timeline_steps": "2:3",
                             "optimizer": "sgd", "momentum": 0.9, "nesterov": true})";
  const Options config = options_of({"--config", path});
  EXPECT_EQ(config.stalls.warning, 60);
  EXPECT_EQ(config.stalls.timeout, 50);
  EXPECT_EQ(config.stalls.start, 5);
  EXPECT_EQ(config.timeline.file, "/t.json");
  EXPECT_EQ(config.timeline.steps.first, 2u);
  EXPECT_EQ(config.optimizer.rule, "sgd");
  EXPECT_EQ(config.optimizer.figures,
            (std::map<std::string, double>{{"momentum", 0.9}, {"nesterov", 1}}));
  EXPECT_EQ(options_of({"--config", path, "--optimizer", "adam"}).optimizer.figures.size(), 0u);
  EXPECT_EQ(options_of({"--config", path, "--stall", "warn=1m"}).stalls.timeout, 600);
  // Elsewhere the words of today are named.
  EXPECT_NE(refusal({"--stall-timeout", "5"}).find("use --stall end=SECONDS"), std::string::npos);
  EXPECT_NE(refusal({"train"}, {{"CPUTRAIN_STALL_WARNING", "5"}}).find("--stall warn=SECONDS"),
            std::string::npos);
  EXPECT_NE(refusal({"--momentum", "0.9"}).find("use --optimizer momentum=X"), std::string::npos);
  EXPECT_NE(refusal({"train"}, {{"CPUTRAIN_RHO", "0.9"}}).find("use --optimizer rmsprop:rho=X"),
            std::string::npos);
  EXPECT_NE(refusal({"--timeline-steps", "1:2"}).find("use --timeline FILE:FIRST:LAST"),
            std::string::npos);
}

TEST(CommandLine, ChecksTheEnvironmentAndTheFileAsStrictly) {
  EXPECT_NE(refusal({"train"}, {{"CPUTRAIN_BATCH", "many"}}).find("many"), std::string::npos);
  const testing::TemporaryFolder folder;
  const auto path = (folder.path() / "config.json").string();
  for (const std::string& text : std::vector<std::string>{
           std::string("{\"batch\": 8}\0{", 15), R"({"batch": 8, "batch": 16})",
           R"({"image-size": 64, "image_size": 96})", R"({"batch": 8} {})", "{\"out\": \"\xff\"}",
           R"({"log_formats": {"a": 1, "a": 2}})", std::string((1 << 20) + 1, ' '), "", "[1]", "{",
           R"({"bacth": 8})", R"({"batch": 0})", R"({"batch": [8]})",
           R"({"freeze": [7, "conv2d"]})", R"({"freeze": []})", R"({"overwrite": "perhaps"})"}) {
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_NE(refusal({"--config", path}), "") << text;
  }
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(refusal({"--config", path}).find("is no regular file"), std::string::npos);
  EXPECT_NE(refusal({"--config", "/dev/zero"}).find("is no regular file"), std::string::npos);
}

TEST(CommandLine, AVariableThatNoCommandReadsIsRefused) {
  for (const auto& [name, says] : std::vector<std::pair<std::string, std::string>>{
           {"CPUTRAIN_BACTH", "did you mean --batch?"},
           {"CPUTRAIN_X", "--x"},
           {"CPUTRAIN_", "CPUTRAIN_"},
           {"CPUTRAIN_BATCH__SIZE", "did you mean --batch-size?"},
           {"CPUTRAIN_WERROR", "--werror"},  // of the build, not of a run
           {"CPUTRAIN_batch", "write CPUTRAIN_BATCH"},
           {"cputrain_batch", "write CPUTRAIN_BATCH"},
           {"CPUTRAIN_BATCH-SIZE", "write CPUTRAIN_BATCH_SIZE"}}) {
    const std::string message = refusal({"train"}, {{name, "8"}});
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find(says), std::string::npos) << message;
    EXPECT_NE(refusal({"--batch", "8"}, {{name, "8"}}), "") << "said by a flag, too";
  }
}

TEST(CommandLine, VariablesOfOtherCommandsAndOfScriptsAreLeftAlone) {
  for (const char* name :
       {"CPUTRAIN_REPEAT", "CPUTRAIN_TOP", "CPUTRAIN_ONNX", "CPUTRAIN_PLATFORM", "CPUTRAIN_IMAGES",
        "CPUTRAIN_CONFUSION", "CPUTRAIN_PLUGINS", "CPUTRAIN_EMULATED", "CPUTRAIN_SKIP_SETUP",
        "CPUTRAIN_MPIRUN", "CPUTRAIN_STARTED_BY", "CPUTRAIN_SERVICE_HOST",
        "CPUTRAIN_PORT_80_TCP_ADDR", "CPUTRAIN_WORKER_SERVICE_PORT_SSH", "cputrain_of_mine"}) {
    EXPECT_EQ(options_of({"--batch", "8"}, {{name, "1"}}).batch, 8u) << name;
  }
  EXPECT_TRUE(
      std::holds_alternative<std::string>(parse({"train", "--help"}, {{"CPUTRAIN_X", "1"}})));
}

TEST(CommandLine, AnEmptyVariableIsNoValue) {
  for (const char* name :
       {"CPUTRAIN_BATCH", "CPUTRAIN_DATA", "CPUTRAIN_OVERWRITE", "CPUTRAIN_CONFIG"}) {
    EXPECT_NE(refusal({"train"}, {{name, ""}}).find(name), std::string::npos);
  }
  EXPECT_EQ(options_of({"--batch", "8"}, {{"CPUTRAIN_BATCH", ""}}).batch, 8u);
}

TEST(Environment, TakesWhatIsMeantForTheProgram) {
  const char* const variables[] = {
      "PATH=/bin",      "CPUTRAIN=./cputrain", "CPUTRAIN_BATCH=8", "CPUTRAIN_BATCH=9",
      "CPUTRAIN_NAKED", "cputrain_data=a=b",   "CPUTRAIN_OUT=",    nullptr};
  EXPECT_EQ(program_variables(variables),
            (Environment{{"CPUTRAIN_BATCH", "8"}, {"cputrain_data", "a=b"}, {"CPUTRAIN_OUT", ""}}));
}

TEST(CommandLine, AFlagKeepsItsRivalOutOfEnvironmentAndFile) {
  const testing::TemporaryFolder folder;
  const auto path = (folder.path() / "config.json").string();
  std::ofstream(path) << R"({"batch": 8, "no-shuffle": true, "drop-last": true})";
  const Options config = options_of({"--config", path, "--batch-per-rank", "4", "--shuffle"}, {});
  EXPECT_FALSE(config.batch);
  EXPECT_EQ(config.batch_per_rank, 4u);
  EXPECT_EQ(config.shuffle, true);
  EXPECT_EQ(config.drop_last, true);
  EXPECT_EQ(options_of({"--config", path}).shuffle, false);
  EXPECT_FALSE(options_of({"--batch-per-rank", "4"}, {{"CPUTRAIN_BATCH", "8"}}).batch);
  EXPECT_FALSE(options_of({"train"}).shuffle);
}

}  // namespace
}  // namespace cputrain::cli
