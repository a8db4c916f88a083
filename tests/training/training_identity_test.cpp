// What a resume may change: every flag of `train` has its place, and is put to the test there.
#include "training/run/same_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/command_line.h"
#include "cli/commands/commands.h"
#include "cli/help_text.h"
#include "composition/services.h"
#include "core/error.h"
#include "core/text.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::training {
namespace {

using Words = std::vector<std::string>;

const cli::CommandLineChoices kChoices{
    .backends =
        {{"reference", {Precision::f32, Precision::f64}},
         {"cpu", {Precision::f32}, false, "", {{"no-winograd", ""}, {"no-skip-zeros", ""}}}},
    .commands = {commands::make_train}};

/// Flags that make another training, each alone. Paths are in the test's folder.
constexpr const char* kOthersAlone =
    "--model norm.json, --image-size 20, --classes 3, --dropout 0.5, --normalize symmetric, "
    "--weights a.safetensors, --freeze conv2d, --backbone-lr 0.001, --data synthetic:40, "
    "--validation-split 0.2, --limit-train 20, --limit-val 2, --expand six, --resize nearest, "
    "--fit crop, --exif ignore, --augment flip, --seed 7, --batch 6, --accumulate 2, "
    "--sharding strided, --no-shuffle, --drop-last, --batch-growth 1:2, --optimizer adam, "
    "--weight-decay 0.01, --clip-value 1, --clip-norm 1, --label-smoothing 0.1, "
    "--ema 0.9, --class-weights balanced, --lr 9, --lr-scale linear, --warmup-epochs 1, "
    "--schedule cosine, --reproducible, --compress bf16";

/// The same of flags that need others beside them.
struct Other {
  std::string changed, base = "";
  std::string name = "";  ///< what differs then, if not the flag itself
};

const std::vector<Other> kOthersBesideOthers{
    {"--partial", "--weights a.safetensors", "weights"},
    {"--balanced", "--limit-train 20"},
    {"--batch-per-rank 6", "--batch-per-rank 8", "batch"},
    {"--micro-batch 4", "--reproducible"},
    {"--micro-batch 4", "--model norm.json"},
    {"--sync-bn", "--model norm.json"},
    {"--optimizer momentum=0.5", "", "momentum"},
    {"--optimizer sgd:momentum=0.5,nesterov", "--optimizer sgd:momentum=0.5", "nesterov"},
    {"--optimizer rmsprop:rho=0.8", "--optimizer rmsprop", "rho"},
    {"--optimizer rmsprop:centered", "--optimizer rmsprop", "centered"},
    {"--optimizer adam:epsilon=0.01", "--optimizer adam", "epsilon"},
    {"--optimizer lars:trust=0.01", "--optimizer lars", "trust"},
    {"--base-batch 4", "--lr-scale linear --base-batch 8"},
    {"--monitor accuracy", "--schedule plateau"},
    {"--eval-every 2", "--schedule plateau"},
    {"--eval-every 2", "--early-stopping 3"},
    {"--momentum-correction", "--optimizer momentum=0.5"}};

/// What ends a training: training_end_test.cpp.
const Words kEnds{"epochs", "steps", "settled-steps", "target-accuracy", "early-stopping"};

/// The result of a run is not another one's with these, but for rounding.
constexpr const char* kSame =
    "--micro-batch 4, --allow-empty-classes, --threads 2, --bind, --io-threads 2, "
    "--eval-every 2, --prefetch 0, --data-on-device off, --no-winograd, --no-skip-zeros, "
    "--allreduce ring, --bucket-mb 1, --no-shard-dense, --decode first, --cache none, "
    "--checkpoint-every 5, --resume auto --out run, --keep 3, --save-best, --monitor accuracy, "
    "--monitor loss, --on-checkpoint-failure stop, --on-failure shrink, --on-nan skip, "
    "--check-replicas 5, --stall warn=5, --out run, "
    "--overwrite, --verbose 3, --log-every 1, --profile, --measure-limits, "
    "--end-with run/.lock, --timeline t.json:1:2, --log-format mlperf, "
    "--dry-run, --dry-run --json -";

/// Flags of the command line itself; and those that only a run at its end keeps to (see below).
const Words kOfTheCommandLine{"help", "help-all", "config", "backend", "precision"};

constexpr const char* kTwoNetworks = R"({"format": "cputrain model 1", "name": "%",
  "recipe": {"image_size": 16, "batch": 8, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.01},
  "layers": [{"type": "convolution", "filters": 4, "kernel": 3}, % {"type": "relu"}, {"type": "flatten"},
             {"type": "dropout", "rate": 0.3}, {"type": "dense", "units": "classes"}, {"type": "softmax"}]})";

Words words_of(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

std::vector<Other> others() {
  std::vector<Other> all = kOthersBesideOthers;
  for (const std::string& changed : split(kOthersAlone, ',')) all.push_back({changed});
  return all;
}

/// "lr" of "--lr 9", and "shuffle" of "--no-shuffle".
std::string flag_of(const std::string& words) {
  const std::string flag = words_of(words).at(0).substr(2);
  return flag.starts_with("no-") ? flag.substr(3) : flag;
}

Words texts(const nlohmann::ordered_json& then, const nlohmann::ordered_json& here, Compared what) {
  Words words;
  for (const auto& row : identity_differences(then, here, what))
    words.push_back(to_text(row, what));
  return words;
}

class TrainingIdentity : public ::testing::Test {
 protected:
  TrainingIdentity() : services_(composition::make_services(launcher_, signals_)) {
    write_network("small", "");
    write_network("norm", R"({"type": "batch_norm"},)");
    weights::safetensors::write(path("a.safetensors"), {}, {});
  }

  std::string path(const std::string& name) const { return folder_.path() / name; }

  nlohmann::ordered_json identity(const std::string& base, const std::string& changed = "") {
    Words words = words_of(
        "--model small.json --data synthetic:30 --threads 1 --verbose 0 "
        "--backend reference " +
        base + " " + changed);
    for (std::string& word : words) {
      if (word.ends_with(".json") || word.ends_with(".safetensors")) word = path(word);
    }
    const auto parsed = cli::parse_command_line(words, {}, kChoices);
    const TrainingFlags& flags = std::get<std::unique_ptr<cli::Command>>(parsed)->options();
    const Session session = start_session(flags, services_);
    return training_identity(open_training(session, choose_training(flags)));
  }

 private:
  void write_network(const std::string& name, const std::string& layer) const {
    std::string text = kTwoNetworks;
    text.replace(text.find('%'), 1, name);
    text.replace(text.find('%'), 1, layer);
    std::ofstream(path(name + ".json")) << text;
  }

  testing::TemporaryFolder folder_;
  system::SignalWatch signals_;
  placement::Launcher launcher_;  // nobody's
  Services services_;
};

TEST(FlagsOfTrain, EachHasItsPlace) {
  for (const cli::FlagEntry& flag : cli::command_entry("train", "", kChoices).flags) {
    const auto places =
        std::ranges::count(kEnds, flag.name) + std::ranges::count(kOfTheCommandLine, flag.name) +
        std::ranges::count_if(
            others(), [&](const Other& other) { return flag_of(other.changed) == flag.name; }) +
        std::ranges::count_if(split(kSame, ','), [&](const std::string& line) {
          const Words words = words_of(line);
          return std::ranges::count(words, "--" + flag.name) > 0 ||
                 (flag.negatable && std::ranges::count(words, "--no-" + flag.name) > 0);
        });
    EXPECT_GE(places, 1) << "--" << flag.name << ": may a resume change it? Put it into a table";
  }
}

TEST_F(TrainingIdentity, AnotherTrainingIsSeen) {
  for (const Other& other : others()) {
    SCOPED_TRACE(other.changed);
    const nlohmann::ordered_json then = identity(other.base);
    const nlohmann::ordered_json now = identity(other.base, other.changed);
    const std::string name = (other.name.empty() ? flag_of(other.changed) : other.name) + ": ";
    for (const Compared what : {Compared::checkpoint, Compared::finished_run}) {
      const Words rows = texts(then, now, what);
      EXPECT_TRUE(std::ranges::any_of(rows, [&](const auto& r) { return r.starts_with(name); }))
          << ::testing::PrintToString(rows);
      EXPECT_TRUE(texts(now, now, what).empty());
    }
  }
}

TEST_F(TrainingIdentity, WhatMayDifferIsNotLookedAt) {
  const nlohmann::ordered_json then = identity("");
  for (const std::string& words : split(kSame, ',')) {
    const Words rows = texts(then, identity(words), Compared::finished_run);
    EXPECT_TRUE(rows.empty()) << words << ::testing::PrintToString(rows);
  }
}

TEST_F(TrainingIdentity, APlateauFollowsTheLossUnlessItIsSaid) {
  const std::string plateau = "--schedule plateau";
  const nlohmann::ordered_json then = identity(plateau);
  EXPECT_FALSE(then.contains("monitor"));
  EXPECT_TRUE(texts(then, identity(plateau, "--monitor loss"), Compared::finished_run).empty());
  const nlohmann::ordered_json other = identity(plateau, "--monitor accuracy");
  EXPECT_EQ(texts(then, other, Compared::checkpoint),
            Words{"monitor: loss in the checkpoint, accuracy here"});
  EXPECT_EQ(texts(other, then, Compared::checkpoint),
            Words{"monitor: accuracy in the checkpoint, loss here"});
}

TEST_F(TrainingIdentity, EvaluationsThatAreCountedComeAfterAsManyEpochs) {
  const std::string plateau = "--schedule plateau";
  const nlohmann::ordered_json other = identity(plateau, "--eval-every 3");
  const nlohmann::ordered_json then = identity(plateau);
  EXPECT_EQ(texts(then, other, Compared::checkpoint),
            Words{"eval-every: 1 in the checkpoint, 3 here"});
  // Early stopping that begins here has counted none before.
  EXPECT_TRUE(
      texts(identity(""), identity("--early-stopping 3 --eval-every 3"), Compared::checkpoint)
          .empty());
}

TEST_F(TrainingIdentity, AnotherBackendOrPrecisionMayGoOnButNotPassForWhatIsFinished) {
  const nlohmann::ordered_json then = identity(""), now = identity("--precision double");
  EXPECT_TRUE(texts(then, now, Compared::checkpoint).empty());
  EXPECT_EQ(texts(then, now, Compared::finished_run),
            Words{"precision: float in the run, double here"});
  nlohmann::ordered_json elsewhere = then;
  elsewhere["backend"] = "cpu";
  EXPECT_TRUE(texts(elsewhere, then, Compared::checkpoint).empty());
  EXPECT_EQ(texts(elsewhere, then, Compared::finished_run),
            Words{"backend: cpu in the run, reference here"});
}

TEST_F(TrainingIdentity, FirstWeightsAreKnownByWhatIsInThem) {
  const nlohmann::ordered_json then = identity("--weights a.safetensors"), none = identity("");
  std::filesystem::copy(path("a.safetensors"), path("moved.safetensors"));
  EXPECT_TRUE(texts(then, identity("--weights moved.safetensors"), Compared::finished_run).empty());
  weights::safetensors::write(path("a.safetensors"), {{"other", "text"}}, {});
  EXPECT_EQ(texts(then, identity("--weights a.safetensors"), Compared::checkpoint).size(), 1u);
  // Who goes on need not name them again; they may be gone.
  EXPECT_TRUE(texts(then, none, Compared::checkpoint).empty());
  EXPECT_EQ(texts(then, none, Compared::finished_run).size(), 1u);
  EXPECT_EQ(texts(none, then, Compared::checkpoint).size(), 1u);
  // A run that began with some goes on where the file is gone; one that began without does not.
  std::filesystem::remove(path("a.safetensors"));
  const nlohmann::ordered_json gone = identity("--weights a.safetensors");
  for (const Compared what : {Compared::checkpoint, Compared::finished_run}) {
    EXPECT_TRUE(texts(then, gone, what).empty());
    EXPECT_EQ(texts(none, gone, what).size(), 1u);
  }
}

TEST_F(TrainingIdentity, DataThatMovedAreTheSame) {
  nlohmann::ordered_json then = identity(""), now = then;
  then["data"] = "photos (0123456789abcdef)";
  now["data"] = "/scratch/photos (0123456789abcdef)";
  EXPECT_TRUE(texts(then, now, Compared::finished_run).empty());
  now["data"] = "photos (0123456789abcdee)";
  EXPECT_EQ(texts(then, now, Compared::checkpoint),
            Words{"data: photos (0123456789abcdef) in the checkpoint, photos (0123456789abcdee) "
                  "here"});
}

}  // namespace
}  // namespace cputrain::training
