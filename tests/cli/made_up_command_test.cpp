// A command line of two commands that no program has: the framework knows none.

#include <gtest/gtest.h>

#include "tests/cli/parsing.h"

namespace cputrain::cli {
namespace {

struct CountOptions : Options {
  int most = 3;
};

class CountCommand final : public CommandWith<CountOptions> {
 public:
  explicit CountCommand(std::string name) : CommandWith({.computes = false}), name_(name) {}
  CommandEntry help() const override {
    return {.name = name_,
            .summary = "numbers",
            .about = "Counts.",
            .examples = {{"cputrain " + name_ + " --most 4", "Counts to four."}},
            .common = {"most"},
            .others = "enumerate," + name_ + "-all",
            .advice = name_ == "down" ? "cputrain down --most N" : ""};
  }
  void add_flags(Flags& f, const CommandLineChoices&) override {
    f.group("Counting");
    f.whole("most", options_.most, 1, 9, "the last number [3]");
  }
  void check(const CommandLineChoices&) override {
    if (options_.was_given("most") && options_.most == 7) fail(ExitCode::usage, "not 7");
  }
  ExitCode run(const training::Services&) override { return ExitCode::ok; }

 private:
  std::string name_;
};

const CommandLineChoices kCounting{
    .backends = {{"cpu", {Precision::f32}}},
    .commands = {[] { return std::make_unique<CountCommand>("up"); },
                 [] { return std::make_unique<CountCommand>("down"); }},
    .examples = {{"cputrain down", "Counts down."}}};

std::string help(const std::vector<std::string>& words) {
  return std::get<std::string>(parse(words, {}, kCounting));
}

TEST(MadeUpCommands, TheFirstIsTheDefaultAndOptionsAreItsOwn) {
  EXPECT_EQ(options_of<CountOptions>({"up"}, {}, kCounting).most, 3);
  EXPECT_EQ(options_of<CountOptions>({"--most", "5"}, {}, kCounting).task.name, "up");
  const auto down = options_of<CountOptions>({"down"}, {{"CPUTRAIN_MOST", "6"}}, kCounting);
  EXPECT_EQ(down.task.name, "down");
  EXPECT_EQ(down.most, 6);
  EXPECT_EQ(refusal({"--most", "7"}, {}, kCounting), "not 7");
  EXPECT_EQ(refusal({"--batch", "8"}, {}, kCounting),
            "--batch is not a flag of this command (see --help)");
}

TEST(MadeUpCommands, HelpAndHintsAreMadeFromTheList) {
  EXPECT_NE(help({"--help"}).find("Counts down."), std::string::npos);
  EXPECT_NE(help({"--help"}).find("  down      numbers\n"), std::string::npos) << help({"--help"});
  EXPECT_NE(help({"up", "--help"}).find("Usage: cputrain [up] [FLAGS]"), std::string::npos);
  EXPECT_EQ(refusal({"train"}, {}, kCounting), "train is not a command; commands are up, down");
  EXPECT_EQ(refusal({"enumerate"}, {}, kCounting),
            "enumerate is not a command; commands are up, down; use up");
  EXPECT_EQ(refusal({"down-all"}, {}, kCounting),
            "down-all is not a command; commands are up, down; cputrain down --most N");
}

}  // namespace
}  // namespace cputrain::cli
