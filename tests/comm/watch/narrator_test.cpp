#include "comm/watch/narrator.h"

#include <gtest/gtest.h>

#include <string>

namespace cputrain::watch {
namespace {

Team six_on_two() {
  return {.token = 1, .hosts = {"a", "a", "b", "b", "b", "b"}, .nodes = {0, 0, 1, 1, 1, 1}};
}

Finding stall(Cause cause, std::vector<int> ranks, double seconds) {
  return {.cause = cause,
          .ranks = std::move(ranks),
          .place = {9, 120, comm::Phase::exchange},
          .seconds = seconds};
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class NarratorTest : public ::testing::Test {
 protected:
  std::string line(const Finding& finding, double now) {
    const auto word = narrator_.hear(finding, now);
    return word ? word->line : "";
  }
  const Team team_ = six_on_two();
  Narrator narrator_{team_, {}};
};

TEST_F(NarratorTest, NamesRankHostStepAndPhase) {
  Finding finding = stall(Cause::silent, {3}, 61);
  finding.may_end = true;
  const std::string text = line(finding, 100);
  EXPECT_TRUE(holds(text, "rank 3 on b does not answer")) << text;
  EXPECT_TRUE(holds(text, "exchange of step 120")) << text;
  EXPECT_TRUE(holds(text, "600 s (--stall end)")) << text;
  EXPECT_FALSE(holds(text, "rank 0")) << text;
}

TEST_F(NarratorTest, PromisesNoEndThatDoesNotCome) {
  EXPECT_FALSE(holds(line(stall(Cause::silent, {3}, 61), 100), "--stall end"));
}

TEST_F(NarratorTest, NamesSeveralByHost) {
  const std::string text = line(stall(Cause::silent, {1, 2, 4, 5}, 61), 100);
  EXPECT_TRUE(holds(text, "Missing ranks: 1 on a; 2, 4, 5 on b")) << text;
  EXPECT_TRUE(holds(line(stall(Cause::silent, {3, 4, 5}, 69), 108), "ranks: 3-5 on b"));
}

TEST_F(NarratorTest, SaysItOnceAMinute) {
  EXPECT_NE(line(stall(Cause::silent, {3}, 60), 100), "");
  EXPECT_EQ(line(stall(Cause::silent, {3}, 61), 101), "");
  EXPECT_EQ(line(stall(Cause::silent, {3}, 119), 159), "");
  EXPECT_NE(line(stall(Cause::silent, {3}, 120), 160), "");
  EXPECT_EQ(line(stall(Cause::silent, {2, 3}, 122), 162), "");
  EXPECT_NE(line(stall(Cause::silent, {2, 3}, 126), 166), "");
}

TEST_F(NarratorTest, SaysThatASlowRankHangs) {
  EXPECT_NE(line(stall(Cause::slow, {3}, 60), 100), "");
  EXPECT_EQ(line(stall(Cause::slow, {3}, 66), 106), "");
  EXPECT_NE(line(stall(Cause::hung, {3}, 70), 110), "");
}

TEST_F(NarratorTest, SaysHowLongARankWasAway) {
  EXPECT_EQ(line({}, 90), "");
  line(stall(Cause::silent, {3}, 60), 100);
  const auto word = narrator_.hear({}, 130);
  ASSERT_TRUE(word);
  EXPECT_TRUE(holds(word->line, "rank 3 on b goes on again after 90.0 s")) << word->line;
  EXPECT_EQ(word->entry["event"], "goes_on");
  EXPECT_EQ(word->entry["seconds"], 90);
  EXPECT_FALSE(narrator_.owes_end());
}

TEST_F(NarratorTest, WritesWhatProgramsRead) {
  Finding finding = stall(Cause::hung, {1}, 600);
  finding.ends = true;
  const auto word = narrator_.hear(finding, 700);
  ASSERT_TRUE(word);
  const nlohmann::ordered_json expected{
      {"event", "end"}, {"cause", "hung"}, {"seconds", 600.0},    {"ranks", {1}},
      {"hosts", {"a"}}, {"step", 120},     {"phase", "exchange"}, {"by", 0}};
  EXPECT_EQ(word->entry, expected);
}

TEST_F(NarratorTest, NamesNoRankWhereTheNetworkIsAtFault) {
  const std::string text = line(stall(Cause::network, {}, 61), 100);
  EXPECT_TRUE(holds(text, "hosts a, b")) << text;
  EXPECT_FALSE(holds(text, "rank 0")) << text;
}

TEST_F(NarratorTest, NamesWhatRanksLackAndNoEnd) {
  const auto said = [&](Cause cause, double now) {
    const auto word = narrator_.hear(stall(cause, {0, 2, 3}, 700), now);
    EXPECT_TRUE(word);
    if (!word) return std::string();
    EXPECT_FALSE(holds(word->line, "--stall end")) << word->line;
    EXPECT_FALSE(holds(word->line, "Missing")) << word->line;
    EXPECT_TRUE(holds(word->line, "ranks 0 on a; 2, 3 on b wait")) << word->line;
    return word->line + word->entry["cause"].dump();
  };
  const std::string cpu = said(Cause::cpu, 800), memory = said(Cause::memory, 810),
                    reader = said(Cause::reader, 820), launcher = said(Cause::launcher, 830);
  EXPECT_TRUE(holds(cpu, "for a CPU (in exchange of step 120)") && holds(cpu, "\"cpu\"")) << cpu;
  EXPECT_TRUE(holds(memory, "memory that is read back") && holds(memory, "\"memory\"")) << memory;
  EXPECT_TRUE(holds(reader, "somebody reads") && holds(reader, "\"reader\"")) << reader;
  EXPECT_TRUE(holds(launcher, "which is stopped") && holds(launcher, "\"launcher\"")) << launcher;
}

TEST_F(NarratorTest, TellsOnceOfHostsThatWereNeverHeard) {
  const std::vector<RankView> views{{.rank = 0, .heard = true}, {.rank = 2, .hidden = true}};
  const auto word = narrator_.hear_hidden(views);
  ASSERT_TRUE(word);
  EXPECT_TRUE(holds(word->line, "no word by UDP comes from b")) << word->line;
  EXPECT_FALSE(narrator_.hear_hidden(views));
}

}  // namespace
}  // namespace cputrain::watch
