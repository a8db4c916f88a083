#include "composition/program.h"
#include "scaling/commands/commands.h"

#include <gtest/gtest.h>

#include "tests/cli/parsing.h"

namespace cputrain::commands {
namespace {

/// A build without the first of the backends that there are: another one is then the default.
TEST(SweepFlags, ColumnsComeFromTheListOfBackends) {
  using enum Precision;
  const cli::CommandLineChoices choices = composition::command_line_choices(
      {{"cpu", {f32, bf16}, false}, {"quick", {f32}}, {"slow", {f32, f64}}});
  EXPECT_EQ(cli::options_of<SweepOptions>({"sweep"}, {}, choices).sweep.grid.backends,
            std::vector<std::string>{"quick"});
  EXPECT_EQ(cli::options_of<SweepOptions>({"sweep", "--backend", "slow,cuda,cpu"}, {}, choices)
                .sweep.grid.backends,
            (std::vector<std::string>{"slow", "cuda", "cpu"}));
  EXPECT_NE(cli::refusal({"sweep", "--backend", "reference"}, {}, choices)
                .find("must be different ones of cpu, cuda, quick, slow"),
            std::string::npos);
}

TEST(SweepFlags, TakeListsOfWhatATrainingTakesOneOf) {
  using enum Precision;
  const cli::CommandLineChoices choices = composition::command_line_choices(
      {{"cpu", {f32, exact, bf16}}, {"cuda", {exact}}, {"slow", {f32, f64}}});
  const auto sweep = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "sweep");
    return cli::options_of<SweepOptions>(words, {}, choices).sweep;
  };
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "sweep");
    return cli::refusal(words, {}, choices);
  };
  using Values = std::vector<std::string>;
  const auto given = sweep(
      {"--allreduce", "recursive_doubling,shm", "--lr", "0.10,default", "--compress", "topk"});
  EXPECT_EQ(given.grid.listed.at("allreduce"), (Values{"recursive-doubling", "shm"}));
  EXPECT_EQ(given.grid.listed.at("lr"), (Values{"0.1", "default"}));
  EXPECT_EQ(given.grid.listed.at("compress"), (Values{"topk:0.01"}));
  EXPECT_TRUE(given.passed_on.empty());
  EXPECT_EQ(refused({"--lr", "0.1,0.10"}),
            "--lr 0.1,0.10: must be different values, with one comma between each two");
  EXPECT_NE(refused({"--allreduce", "shm,"}).find("must be different values"), std::string::npos);
  EXPECT_NE(refused({"--compress", "none,zip"}).find("zip"), std::string::npos);
  EXPECT_NE(cli::refusal({"--allreduce", "shm,ring"}, {}, choices).find("--allreduce shm,ring"),
            std::string::npos);

  EXPECT_EQ(sweep({"--backend", "cpu,cuda"}).precisions.at("cuda"), Values{"exact"});
  sweep({"--backend", "cuda"});
  sweep({"--backend", "cpu,cuda,slow", "--precision", "bf16,exact,float"});  // single cells are n/a
  EXPECT_EQ(refused({"--backend", "cpu,cuda", "--precision", "bf16"}),
            "--backend cuda: it computes in exact, and --precision bf16 asks for none of them (it "
            "could have no cell); add one of them, or leave the backend out");
  EXPECT_EQ(refused({"--backend", "cpu,cuda", "--precision", "exact,double"}),
            "--precision double needs --backend slow");
  EXPECT_EQ(refused({"--extend"}),
            "--extend needs --out DIR, the folder of the sweep to add cells to");
  EXPECT_EQ(refused({"--extend", "--out", "s", "--overwrite"}),
            "--extend and --overwrite exclude each other; leave one out");
}

}  // namespace
}  // namespace cputrain::commands
