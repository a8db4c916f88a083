// The rows of flags, from the library: what a command line does with them is tests/cli's.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "core/error.h"
#include "tests/support/refusal.h"
#include "training/request/training_rows.h"

namespace cputrain::training {
namespace {

using Json = nlohmann::ordered_json;

/// What the flag is after this text.
Json after(const char* name, const std::string& text) {
  TrainingFlags flags;
  training_row(name).set(flags, text);
  return training_row(name).get(flags);
}

std::string refusal(const char* name, const std::string& text) {
  return testing::refusal_of(ExitCode::usage, [&] { after(name, text); });
}

TEST(TrainingRows, NameEachFlagOnceWithAllThatHelpNeeds) {
  std::set<std::string> names;
  for (const FlagRow& row : training_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.part.empty() || row.help.empty()) << row.name;
    EXPECT_EQ(row.meta.empty(), row.kind != FlagRow::Kind::value) << row.name;
    EXPECT_TRUE(row.set && row.get && row.copy) << row.name;
    // Without `holds`, what was typed is what the identity has: of a switch that is no value.
    if (row.is_identity && row.kind == FlagRow::Kind::yes_or_no) {
      EXPECT_TRUE(row.holds) << row.name;
    }
    EXPECT_NO_THROW(row.get({})) << row.name;
    if (!row.rival.empty()) {
      EXPECT_EQ(training_row(row.rival).rival, row.name);
    }
  }
}

TEST(TrainingRows, ReadEveryKindOfValue) {
  EXPECT_EQ(after("batch", "32"), 32);
  EXPECT_EQ(after("label-smoothing", "0.1"), 0.1);
  EXPECT_EQ(after("model", "vgg16"), "vgg16");
  EXPECT_EQ(after("lr-scale", "pow23"), "pow23");
  EXPECT_EQ(after("momentum-correction", "true"), true);
  EXPECT_EQ(after("shuffle", "false"), false);
  EXPECT_EQ(after("on-nan", "rollback"), "rollback");
  EXPECT_EQ(after("compress", "topk"), "topk:0.01");
  EXPECT_EQ(training_row("lr").get({}), nullptr);
  EXPECT_EQ(training_row("shuffle").get({}), nullptr);
  EXPECT_EQ(after("freeze", "conv2d*"), nullptr);  // only read
}

TEST(TrainingRows, TimesOfStallsAreOneFlag) {
  const auto read = [](const std::string& text) {
    TrainingFlags flags;
    training_row("stall").set(flags, text);
    return std::tuple(flags.stalls.warning, flags.stalls.timeout, flags.stalls.start);
  };
  EXPECT_EQ(read("end=5"), std::tuple(60.0, 5.0, 600.0));
  EXPECT_EQ(read("start=1h,warn=0.5s,end=10m"), std::tuple(0.5, 600.0, 3600.0));
  EXPECT_EQ(read("end=0,start=0"), std::tuple(60.0, 0.0, 0.0));
  for (const char* wrong : {"", "5", "end", "end=", "end=5x", "end=-1", "end=5,end=6", "warn=0",
                            "warn=0.4", "end=5,", "stop=5", "end=1e9", "end=nan", "END=5"}) {
    EXPECT_NE(refusal("stall", wrong).find("warn=30s,end=10m"), std::string::npos) << wrong;
  }
}

TEST(TrainingRows, StepsOfATimelineStandBehindItsFile) {
  const auto read = [](const std::string& text) {
    TrainingFlags flags;
    training_row("timeline").set(flags, text);
    return std::tuple(flags.timeline.file, flags.timeline.steps.first, flags.timeline.steps.last);
  };
  EXPECT_EQ(read("t.json"), std::tuple("t.json", 1u, 20u));
  EXPECT_EQ(read("a:b.json:20:25"), std::tuple("a:b.json", 20u, 25u));
  EXPECT_EQ(read("at-12:30:05.json"), std::tuple("at-12:30:05.json", 1u, 20u));
  EXPECT_EQ(read("a:2/b"), std::tuple("a:2/b", 1u, 20u));
  for (const char* wrong : {"t:5", "t:0:3", "t:7:5", "t:1:2:3", ":1:2", "t:a:b", "t.json:1:x",
                            "t:-1:5", "t:1:5.5", "t:", "t:1:"}) {
    EXPECT_NE(refusal("timeline", wrong).find("FILE:FIRST:LAST"), std::string::npos) << wrong;
  }
}

TEST(TrainingRows, FiguresOfTheOptimizerStandBehindItsRule) {
  const auto read = [](const std::string& text) {
    TrainingFlags flags;
    training_row("optimizer").set(flags, text);
    return std::pair(flags.optimizer.rule, flags.optimizer.figures);
  };
  using Figures = std::map<std::string, double>;
  EXPECT_EQ(read("adam"), std::pair(std::string("adam"), Figures{}));
  EXPECT_EQ(read("rmsprop:momentum=0.9,centered,rho=0.95"),
            std::pair(std::string("rmsprop"),
                      Figures({{"centered", 1}, {"momentum", 0.9}, {"rho", 0.95}})));
  EXPECT_EQ(read("sgd:nesterov=false"), std::pair(std::string("sgd"), Figures{{"nesterov", 0}}));
  EXPECT_EQ(read("epsilon=1e-07,trust=0.01"),
            std::pair(std::string(), Figures({{"epsilon", 1e-7}, {"trust", 0.01}})));
  for (const char* wrong : {"sgd:", "sgd:momentum", "sgd:momentum=1", "sgd:momentum=-0.1",
                            "sgd:momentum=x", "sgd:nesterov=2", "sgd:momentum=0.5,momentum=0.6",
                            "sgd:decay=0.1", "sgd:momentum=0.9,", "momentum=", "sgd:rho=nan"}) {
    EXPECT_NE(refusal("optimizer", wrong).find("must be a figure of the rule"), std::string::npos)
        << wrong;
  }
  EXPECT_NE(refusal("optimizer", "sdg:momentum=0.9").find("did you mean sgd?"), std::string::npos);
}

TEST(TrainingRows, RefuseWhatIsBeyondTheirBounds) {
  EXPECT_EQ(refusal("batch", "0"), "--batch 0: must be a whole number from 1 to 16777216");
  EXPECT_EQ(refusal("label-smoothing", "1"),
            "--label-smoothing 1: must be a number from 0 to 0.999");
  EXPECT_EQ(refusal("lr-scale", "linaer"),
            "--lr-scale linaer: must be one of none, linear, sqrt, pow23; did you mean linear?");
  for (const auto& [name, text] : {std::pair("batch-growth", "30"),
                                   {"checkpoint-every", "x"},
                                   {"early-stopping", "0"},
                                   {"timeline", "t.json:2:1"},
                                   {"freeze", "a,,b"},
                                   {"log-format", "mlperf,caffe"}}) {
    EXPECT_NE(refusal(name, text).find(std::string("--") + name), std::string::npos) << name;
  }
}

TEST(TrainingRows, ALogThatWasRemovedHasItsSuccessorNamed) {
  const std::string message = refusal("log-format", "mlperf,dawnbench");
  EXPECT_NE(message.find("dawnbench was removed; use metrics.jsonl"), std::string::npos) << message;
  EXPECT_EQ(refusal("log-format", "caffe").find("removed"), std::string::npos);
}

TEST(TrainingRows, SpellValuesAsTheyAreTyped) {
  TrainingFlags flags;
  flags.lr = 1;
  flags.prefetch = 0;
  flags.allreduce = comm::parse_allreduce("hierarchical+ring");
  EXPECT_EQ(training_row("lr").spelling(flags), "1");
  EXPECT_EQ(training_row("prefetch").spelling(flags), "0");
  EXPECT_EQ(training_row("allreduce").spelling(flags), "hierarchical+ring");
  TrainingFlags others;
  training_row("allreduce").copy(others, flags);
  EXPECT_EQ(others.allreduce, flags.allreduce);
  EXPECT_EQ(others.lr, std::nullopt);
}

// A program that fills members in without `given` has them in config.json where they are its rows'.
TEST(TrainingRows, RecordWhatHolds) {
  TrainingFlags flags;
  flags.optimizer = {"rmsprop", {{"rho", 0.8}}};
  flags.label_smoothing = 0.1;
  flags.drop_last = true;
  flags.batch_growth = {{30, 2}, {60, 4}};
  const Json recorded = effective_flags(choose_training(flags));
  EXPECT_EQ(recorded["optimizer"], "rmsprop");
  EXPECT_EQ(recorded["rho"], 0.8);
  EXPECT_EQ(recorded["centered"], false);
  EXPECT_FALSE(recorded.contains("nesterov") || recorded.contains("trust"));
  EXPECT_EQ(recorded["label-smoothing"], 0.1);
  EXPECT_EQ(recorded["drop-last"], true);
  EXPECT_EQ(recorded["batch-growth"], "30:2,60:4");
  EXPECT_EQ(recorded["model"], "dogcat");
  EXPECT_FALSE(recorded.contains("micro-batch") || recorded.contains("no-drop-last"));
}

// Everything that is given is text: on the command line, in the environment, in a file.
TEST(TrainingRows, RecordWhatWasGivenInItsOwnType) {
  TrainingFlags flags;
  const std::pair<const char*, const char*> given[] = {
      {"eval-every", "2"}, {"clip-norm", "0.5"}, {"save-best", "true"}, {"early-stopping", "3"}};
  for (const auto& [name, text] : given) {
    training_row(name).set(flags, text);
    flags.given.emplace_back(name, text);
  }
  flags.given.emplace_back("no-winograd", "true");
  flags.switches = {"save-best", "no-winograd"};
  const Json recorded = effective_flags(choose_training(flags));
  EXPECT_EQ(recorded["eval-every"], Json(2));
  EXPECT_EQ(recorded["clip-norm"], Json(0.5));
  EXPECT_EQ(recorded["save-best"], Json(true));
  EXPECT_EQ(recorded["no-winograd"], Json(true));
  EXPECT_EQ(recorded["early-stopping"], Json("3"));  // it may be 3:0.01
}

}  // namespace
}  // namespace cputrain::training
