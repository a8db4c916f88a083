#include "cli/command_line.h"
#include "composition/program.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/parsing.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::cli {
namespace {

TEST(CommandLine, VersionIsThatOfTheProjectAndOfTheBuild) {
  CommandLineChoices choices = kUsual;
  choices.build = "commit 0a1b2c3, Debug";
  for (const auto& words : std::vector<std::vector<std::string>>{{"--version"},
                                                                 {"train", "--version"},
                                                                 {"data", "--version"},
                                                                 {"--lr", "1", "--version"}}) {
    const auto parsed = parse(words, {}, choices);
    EXPECT_EQ(std::get<std::string>(parsed),
              "cputrain " CPUTRAIN_PROJECT_VERSION " (commit 0a1b2c3, Debug)\n");
  }
}

TEST(CommandLine, TrainsWhenNoCommandIsNamed) {
  const Options config = options_of({"--batch", "1024"});
  EXPECT_EQ(config.task.name, "train");
  EXPECT_TRUE(config.task.typed.empty());
  EXPECT_EQ(config.batch, 1024u);
  EXPECT_EQ(options_of({"train"}).task.name, "train");
  EXPECT_TRUE(options_of({"train"}).task.typed.empty());
  EXPECT_EQ(options_of({"data", "check", "d"}).task.typed,
            (std::vector<std::string>{"data", "check"}));
}

TEST(CommandLine, TakesHyphensUnderscoresAndEqualSignsAlike) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--image-size", "64"}, {"--image_size=64"}, {"--image-size=64"}}) {
    EXPECT_EQ(options_of(words).image_size, 64);
  }
}

TEST(CommandLine, AFlagIsNoValueOfTheOneBeforeIt) {
  EXPECT_EQ(refusal({"--lr", "--steps", "0"}), "--lr needs a value (see --help)");
  EXPECT_EQ(refusal({"--out", "--batch_size=4"}), "--out needs a value (see --help)");
  EXPECT_EQ(options_of({"--out", "--none"}).out, "--none");
  EXPECT_EQ(options_of({"--out=--steps"}).out, "--steps");
}

TEST(CommandLine, TheLastOfTwoFlagsCounts) {
  EXPECT_EQ(options_of({"--batch", "8", "--batch", "16"}).batch, 16u);
}

TEST(CommandLine, ASwitchMayHaveYesOrNoBehindIt) {
  EXPECT_TRUE(options_of({"--balanced=yes", "--limit-val", "4"}).balanced);
  EXPECT_TRUE(options_of({"--balanced=True", "--limit-val", "4"}).balanced);
  EXPECT_FALSE(options_of({"--balanced=off"}).balanced);
  EXPECT_TRUE(options_of({"--balanced=off"}).given.empty());
  EXPECT_EQ(refusal({"--balanced=perhaps"}),
            "--balanced perhaps: must be true, yes, on, 1, false, no, off or 0");
}

TEST(CommandLine, NamesFlagValueAndWhatIsAllowed) {
  for (const auto& [words, parts] :
       std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>{
           {{"--batch", "0"}, {"batch", "0", "1 to"}},
           {{"--batch", "-4"}, {"batch", "-4"}},
           {{"--batch", "twelve"}, {"batch", "twelve"}},
           {{"--batch", "1e3"}, {"batch", "1e3"}},
           {{"--batch"}, {"batch", "value"}},
           {{"--lr", "nan"}, {"lr", "nan"}},
           {{"--lr=inf"}, {"lr", "inf"}},
           {{"--dropout", "1"}, {"dropout", "0.999"}},
           {{"--optimizer", "rmsprob"}, {"rmsprob", "rmsprop"}},
           {{"--backend", "tpu"}, {"tpu", "reference"}},
           {{"--bacth", "32"}, {"bacth", "batch"}},
           {{"-b", "32"}, {"-b"}},
           {{"trian"}, {"trian", "did you mean train"}},
           {{"train", "extra"}, {"extra"}},
           {{"bench"}, {"bench", "step"}},
           {{"bench", "stepp"}, {"stepp", "step"}},
           {{"data", "check"}, {"data check"}},
           {{"data", "pack", "x"}, {"data pack", "FILE.ctpack"}},
           {{"data", "pack", "x", "y.ctpack", "z"}, {"z is one word too many"}},
           {{"data", "synth"}, {"data synth"}},
           {{"data", "synth", "d", "--format", "gif"}, {"gif", "png"}},
           {{"data", "check", "x", "--resize", "nearest"}, {"--resize"}},
           {{"--augment", "flip,zom:0.1"}, {"--augment flip,zom:0.1", "did you mean zoom"}},
           {{"--augment", "crop:-1"}, {"crop:PIXELS", "0 to 1024"}},
           {{"--resize", "cubic"}, {"resize", "cubic", "nearest"}},
           {{"--exif", "turn"}, {"exif", "turn", "apply", "ignore"}},
           {{"--expand", "seven"}, {"expand", "six-leaky"}},
           {{"eval", "--data", "x"}, {"--weights"}},
           {{"predict", "--weights", "w"}, {"image"}},
           {{"--precision", "double"}, {"double", "reference"}},
           {{"--sharding", "shards"}, {"sharding", "shards", "shard-then-batch"}},
           {{"--schedule", "cosin"}, {"schedule", "cosin", "cosine[:FLOOR]"}},
           {{"--lr-scale", "log"}, {"lr-scale", "log", "pow23"}},
           {{"--batch-growth", "30"}, {"batch-growth", "30", "EPOCHS:FACTOR"}},
           {{"--batch-growth", "30:2,30:4"}, {"30:2,30:4", "ascending"}},
           {{"--batch-growth", "30:0"}, {"30:0"}},
           {{"--batch-growth", "30:2x"}, {"30:2x"}},
           {{"--batch-growth", "0:2"}, {"0:2"}},
           {{"--batch-growth", "2:99999999999"}, {"2:99999999999"}},
           {{"--accumulate", "0"}, {"accumulate", "0"}},
           {{"--clip-norm", "0"}, {"clip-norm", "0"}},
           {{"--clip-value=-1"}, {"clip-value", "-1"}},
           {{"--target-accuracy", "90"}, {"target-accuracy", "90", "0 to 1"}},
           {{"--target-accuracy", "0.9", "--limit-val", "0"}, {"target-accuracy", "limit-val"}},
           {{"--label-smoothing", "1"}, {"label-smoothing", "1"}},
           {{"--batch", "8", "--batch-per-rank", "4"}, {"--batch ", "--batch-per-rank"}},
           {{"--batch-size", "8", "--batch-per-rank", "4"}, {"--batch ", "--batch-per-rank"}},
           {{"--drop-last", "--no-drop-last"}, {"--drop-last", "--no-drop-last"}},
           {{"--config", "/nowhere.json"}, {"/nowhere.json"}}}) {
    const std::string message = refusal(words);
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << message << " lacks " << part;
    }
  }
}

TEST(CommandLine, DataFlagsReachTheRequest) {
  const Options config = options_of(
      {"--data", "inat:d", "--limit-train", "50", "--balanced", "--expand", "six-leaky", "--resize",
       "nearest", "--exif", "ignore", "--augment", "crop:4,flip", "--allow-empty-classes"});
  const data::DataRequest request = config.data_request(7);
  EXPECT_EQ(request.spec, "inat:d");
  EXPECT_EQ(request.seed, 7u);
  EXPECT_TRUE(request.balanced);
  EXPECT_EQ(request.exif, data::Exif::ignore);
  EXPECT_TRUE(request.allow_empty_classes);
  EXPECT_FALSE(request.to_evaluate);
  EXPECT_EQ(request.expand, data::Expand::six_leaky);
  EXPECT_EQ(config.resize, data::Resize::nearest);
  EXPECT_EQ(config.augment, (data::Augment{.flip = true, .crop = 4}));
  const Options pack = options_of({"data", "pack", "in", "out.ctpack", "--image-size", "64"});
  EXPECT_EQ(pack.data, "in");
  EXPECT_EQ(pack.files.back(), "out.ctpack");
  EXPECT_EQ(pack.data_request(0).exif, data::Exif::apply);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"train"},
                                             {"eval", "--weights", "w"},
                                             {"predict", "--weights", "w", "a.jpg"},
                                             {"data", "check", "d"},
                                             {"data", "info", "d"},
                                             {"data", "pack", "d", "p.ctpack"},
                                             {"bench", "input", "--data", "d"},
                                             {"sweep", "--np", "1"}}) {
    std::vector<std::string> ignoring = words;
    ignoring.insert(ignoring.end(), {"--exif", "ignore"});
    EXPECT_EQ(options_of(ignoring).exif, data::Exif::ignore) << words[0];
    EXPECT_FALSE(options_of(words).exif) << words[0];
  }
}

TEST(CommandLine, FlagsOfOtherCommandsAreUnknown) {
  EXPECT_NE(refusal({"predict", "--weights", "w", "--batch", "3", "a.jpg"}).find("--batch"),
            std::string::npos);
}

TEST(CommandLine, BatchSizeIsBatch) {
  EXPECT_EQ(options_of({"--batch-size", "8"}).batch, 8u);
  EXPECT_EQ(options_of({"--batch_size=8"}).batch, 8u);
  EXPECT_EQ(options_of({"train"}, {{"CPUTRAIN_BATCH_SIZE", "8"}}).batch, 8u);
  EXPECT_EQ(options_of({"--batch", "4"}, {{"CPUTRAIN_BATCH_SIZE", "8"}}).batch, 4u);
  EXPECT_EQ(options_of({"--batch-size", "4"}, {{"CPUTRAIN_BATCH", "8"}}).batch, 4u);
}

TEST(CommandLine, TwoWordsForOneFlagMustSayTheSame) {
  const auto expect_named = [](const std::string& message, const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << word << " is not in: " << message;
    }
  };
  // Flags, in either order and every command that has them.
  expect_named(refusal({"--batch-size", "8", "--batch=16"}), {"--batch-size 8", "--batch 16"});
  expect_named(refusal({"--batch", "8", "--batch_size", "16"}), {"--batch 8", "--batch-size 16"});
  expect_named(refusal({"sweep", "--batch", "8", "--batch-size", "16"}), {"one flag"});
  expect_named(refusal({"simulate", "--batch", "8", "--batch-size", "16"}), {"one flag"});
  EXPECT_EQ(options_of({"--batch-size", "8", "--batch", "8"}).batch, 8u);
  EXPECT_EQ(options_of({"--batch-size", "4", "--batch-size", "8", "--batch", "8"}).batch, 8u);
  EXPECT_EQ(options_of({"--image-size", "64", "--image_size", "32"}).image_size, 32)
      << "hyphens and underscores are one word, of which the last counts";
  // Variables, where they count.
  const Variables two{{"CPUTRAIN_BATCH", "8"}, {"CPUTRAIN_BATCH_SIZE", "16"}};
  expect_named(refusal({"train"}, two),
               {"CPUTRAIN_BATCH=8", "CPUTRAIN_BATCH_SIZE=16", "unset one"});
  expect_named(refusal({"sweep"}, two), {"CPUTRAIN_BATCH=8"});
  EXPECT_EQ(options_of({"train"}, {{"CPUTRAIN_BATCH", "8"}, {"CPUTRAIN_BATCH_SIZE", "8"}}).batch,
            8u);
  EXPECT_EQ(options_of({"--batch", "4"}, two).batch, 4u);
  EXPECT_EQ(options_of({"--batch-per-rank", "4"}, two).batch_per_rank, 4u);
  expect_named(refusal({"train"}, {{"CPUTRAIN_SHUFFLE", "1"}, {"CPUTRAIN_NO_SHUFFLE", "1"}}),
               {"--shuffle", "--no-shuffle"});
  // Files.
  const testing::TemporaryFolder folder;
  const auto path = (folder.path() / "config.json").string();
  for (const char* text : {R"({"batch": 8, "batch-size": 16})", R"({"batch_size": 8, "batch": 8})",
                           R"({"image-size": 8, "image_size": 16})"}) {
    std::ofstream(path) << text;
    expect_named(refusal({"--config", path}), {"a second time", "leave one out"});
  }
}

TEST(CommandLine, AnEmptyTextInAFileIsNoValue) {
  const testing::TemporaryFolder folder;
  const auto path = (folder.path() / "config.json").string();
  for (const char* text : {R"({"resume": ""})", R"({"freeze": [""]})", R"({"lr": ""})"}) {
    std::ofstream(path) << text;
    EXPECT_TRUE(refusal({"--config", path}).ends_with(" needs a value (see --help)")) << text;
  }
}

TEST(CommandLine, WordsBehindTwoHyphensAreFiles) {
  using Names = std::vector<std::string>;
  const Names predict{"predict", "--weights", "w"};
  const auto files = [](Names words, const Names& more) {
    words.insert(words.end(), more.begin(), more.end());
    return options_of(words).files;
  };
  EXPECT_EQ(files(predict, {"--", "-1.png"}), Names{"-1.png"});
  EXPECT_EQ(files(predict, {"a.png", "--", "--top", "--help", "--", "-"}),
            (Names{"a.png", "--top", "--help", "--", "-"}));
  EXPECT_EQ(files(predict, {"a.png", "--"}), Names{"a.png"});
  EXPECT_EQ(files({"data", "pack"}, {"--image-size", "16", "--", "-d", "-d.ctpack"}),
            (Names{"-d", "-d.ctpack"}));
  EXPECT_EQ(options_of({"data", "check", "--", "-d"}).data, "-d");
  EXPECT_EQ(files({"data", "synth"}, {"--", "-d"}), Names{"-d"});
  EXPECT_EQ(files({"report"}, {"--", "-run"}), Names{"-run"});
  EXPECT_EQ(refusal({"predict", "--weights", "--", "a.png"}),
            "--weights needs a value (see --help)");
  EXPECT_NE(refusal({"--", "-1.png"}).find("-1.png"), std::string::npos) << "a training takes none";
  EXPECT_FALSE(options_of({"--"}).batch);
}

TEST(CommandLine, ReadsRecipes) {
  const Options config =
      options_of({"--sharding", "strided", "--batch-growth", "30:2,60:4", "--schedule",
                  "step:30:0.1", "--lr-scale", "pow23", "--accumulate", "4"});
  EXPECT_EQ(config.sharding, data::Sharding::strided);
  EXPECT_EQ(config.batch_growth, (std::vector<data::BatchGrowth>{{30, 2}, {60, 4}}));
  EXPECT_EQ(config.schedule, optim::Schedule(optim::StepDecay{30, 0.1}));
  EXPECT_EQ(config.lr_scale, optim::RateScale::pow23);
  EXPECT_EQ(config.accumulate, 4);
}

/// A build without the first of the backends that there are: another one is then the default.
TEST(CommandLine, BackendsAndTheirPrecisionsComeFromTheList) {
  using enum Precision;
  const CommandLineChoices choices = composition::command_line_choices(
      {{"cpu", {f32, bf16}, false}, {"quick", {f32}}, {"slow", {f32, f64}}});
  const auto accepted = [&](const std::vector<std::string>& words) {
    return options_of(words, {}, choices);
  };
  const auto refused = [&](const std::vector<std::string>& words) {
    return refusal(words, {}, choices);
  };
  EXPECT_EQ(accepted({"train"}).backend, "quick");
  EXPECT_EQ(accepted({"--backend", "slow", "--precision", "double"}).precision, f64);
  EXPECT_EQ(refused({"--backend", "cpu"}), "--backend cpu: must be one of quick, slow");
  EXPECT_EQ(refused({"--precision", "double"}), "--precision double needs --backend slow");
  EXPECT_EQ(refused({"--precision", "bf16"}),
            "--precision bf16 needs --backend cpu, in a build that has it");
  const std::string help = std::get<std::string>(parse({"train", "--help-all"}, {}, choices));
  EXPECT_NE(help.find("[quick]"), std::string::npos) << help;
  EXPECT_EQ(help.find("reference"), std::string::npos) << help;
}

TEST(CommandLine, ABuildSaysWhatItLacksToWhoAsksForIt) {
  const CommandLineChoices choices = composition::command_line_choices(
      {{"cpu", {Precision::f32}},
       {"cuda", {Precision::f32}, false, "--backend cuda: no nvcc; install it"}});
  EXPECT_EQ(refusal({"--backend", "cuda"}, {}, choices), "--backend cuda: no nvcc; install it");
  EXPECT_EQ(refusal({"--backend", "vector"}, {}, choices),
            "--backend vector: must be one of cpu, cuda");
}

TEST(CommandLine, OptionsOfABackendAreFlagsWithoutAValue) {
  const CommandLineChoices choices = composition::command_line_choices(
      {{"quick", {Precision::f32}, true, "", {{"no-tricks", "compute plainly"}}},
       {"slow", {Precision::f32}}});
  const Options config = options_of({"--no_tricks"}, {}, choices);
  EXPECT_EQ(config.options_of("quick"), std::set<std::string>{"no-tricks"});
  EXPECT_TRUE(config.options_of("slow").empty());
  const std::string help = std::get<std::string>(parse({"train", "--help-all"}, {}, choices));
  EXPECT_NE(help.find("compute plainly"), std::string::npos) << help;
}

TEST(CommandLine, RemembersWhatWasGiven) {
  const Options config = options_of({"--batch", "8", "--sync-bn"});
  EXPECT_TRUE(config.sync_bn);
  EXPECT_EQ(config.given.size(), 2u);
}

}  // namespace
}  // namespace cputrain::cli
