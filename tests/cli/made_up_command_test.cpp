// A command line of two commands that no program has: the framework knows none.

#include <gtest/gtest.h>

#include "tests/cli/parsing.h"

namespace cputrain::cli {
namespace {

struct CountOptions : Options {
  int most = 3;
};

std::unique_ptr<Command> make_count(const std::string& name) {
  return make_command<CountOptions>(
      {.help = {.name = name,
                .summary = "numbers",
                .about = "Counts.",
                .examples = {{"cputrain " + name + " --most 4", "Counts to four."}},
                .common = {"most"},
                .others = "enumerate," + name + "-all",
                .advice = name == "down" ? "cputrain down --most N" : ""},
       .task = {.computes = false},
       .add_flags =
           [](Flags& f, CountOptions& options, const CommandLineChoices&) {
             f.group("Counting");
             f.whole("most", options.most, 1, 9, "the last number [3]");
           },
       .check =
           [](const CountOptions& options, const CommandLineChoices&) {
             if (options.was_given("most") && options.most == 7) fail(ExitCode::usage, "not 7");
           },
       .run = [](auto&&...) { return ExitCode::ok; }});
}

const CommandLineChoices kCounting{
    .backends = {{"cpu", {Precision::f32}}},
    .commands = {[] { return make_count("up"); }, [] { return make_count("down"); }},
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
