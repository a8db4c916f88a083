#include "comm/watch/findings.h"

#include <gtest/gtest.h>

#include "system/clock.h"

namespace cputrain::watch {
namespace {

using comm::Phase;

/// 60 s until the warning, 600 s until the end.
const Limits kUsual;

/// A rank that waits for others in the exchange of step 5.
RankView waiting(int rank, double still = 70) {
  return {.rank = rank,
          .last = {.place = {10, 5, Phase::exchange}, .waits = true, .still = still, .fair = still},
          .heard = true};
}

/// One that does not wait.
RankView at_work(int rank, double idle, double still = 70) {
  return {.rank = rank,
          .last = {.place = {9, 5, Phase::backward}, .still = still, .idle = idle},
          .heard = true};
}

RankView silent(int rank, double silence = 70) {
  RankView view = at_work(rank, 0, 1);
  view.silence = silence;
  return view;
}

RankView deaf(int rank, double deaf = 70, double still = 70) {
  RankView view = waiting(rank, still);
  view.last.deaf = deaf;
  return view;
}

/// One that does not wait for others, but for a CPU or the like.
RankView lacking(int rank, Cause what, double still = 70) {
  RankView view = at_work(rank, 0, still);
  view.last.lacks = what;
  return view;
}

/// One that waits for others and had a CPU for `fair` seconds of it.
RankView starved(int rank, double fair, double still) {
  RankView view = waiting(rank, still);
  view.last.lacks = Cause::cpu;
  view.last.fair = fair;
  return view;
}

RankView hidden(int rank) { return {.rank = rank, .silence = 1000, .hidden = true}; }

RankView finished(int rank) { return {.rank = rank, .silence = 1000, .finished = true}; }

Finding find(const std::vector<RankView>& views, const Limits& limits = kUsual) {
  return find_stall(views, limits);
}

void expect_found(const Finding& finding, Cause cause, const std::vector<int>& ranks, bool ends) {
  EXPECT_EQ(finding.cause, cause);
  EXPECT_EQ(finding.ranks, ranks);
  EXPECT_EQ(finding.ends, ends);
}

TEST(Findings, NothingWhileAnyRankGetsFurther) {
  expect_found(find({waiting(0), waiting(1), at_work(2, 0, 1)}), Cause::none, {}, false);
  expect_found(find({waiting(0, 59), waiting(1, 59)}), Cause::none, {}, false);
  expect_found(find({}), Cause::none, {}, false);
}

TEST(Findings, ASilentRankIsNamedAndEndsTheJob) {
  const Finding finding = find({waiting(0), silent(1), waiting(2)});
  expect_found(finding, Cause::silent, {1}, false);
  EXPECT_EQ(finding.place, (comm::Place{10, 5, Phase::exchange}));  // where the others wait
  EXPECT_DOUBLE_EQ(finding.seconds, 70);
  expect_found(find({waiting(0, 600), silent(1, 600), waiting(2, 601)}), Cause::silent, {1}, true);
}

TEST(Findings, AllSilentRanksAreNamed) {
  expect_found(find({waiting(0), silent(1), silent(2), waiting(3)}), Cause::silent, {1, 2}, false);
}

TEST(Findings, ARankThatAnswersAndDoesNothingHangs) {
  expect_found(find({waiting(0, 700), at_work(1, 690, 700)}), Cause::hung, {1}, true);
}

TEST(Findings, WhoIsBehindKeepsTheOthers) {
  RankView ahead = at_work(1, 70);
  ahead.last.place.calls = 10;
  expect_found(find({waiting(0), ahead, at_work(2, 70)}), Cause::hung, {2}, false);
}

TEST(Findings, SlowIsNamedAndEndsNothing) {
  expect_found(find({waiting(0, 5000), at_work(1, 10, 5000)}), Cause::slow, {1}, false);
}

TEST(Findings, ARankThatComputedForLongHasItsTimeToHang) {
  expect_found(find({waiting(0, 5000), at_work(1, 40, 5000)}), Cause::hung, {1}, false);
  expect_found(find({waiting(0, 5000), at_work(1, 600, 5000)}), Cause::hung, {1}, true);
}

TEST(Findings, ASilentRankEndsNothingWhileAnotherComputes) {
  expect_found(find({silent(0, 5000), at_work(1, 10, 5000)}), Cause::silent, {0}, false);
}

TEST(Findings, WhereAllComputeNobodyWaits) {
  expect_found(find({at_work(0, 10, 700), at_work(1, 0, 700)}), Cause::none, {}, false);
}

TEST(Findings, WhoHearsNobodyIsBehindACutLink) {
  expect_found(find({waiting(0), waiting(1), deaf(2), deaf(3)}), Cause::deaf, {2, 3}, false);
}

TEST(Findings, WhoHearsNobodyEndsTheJobOnceItWasSoForTheTimeOut) {
  expect_found(find({waiting(0, 700), deaf(1, 20, 700)}), Cause::deaf, {1}, false);
  expect_found(find({waiting(0, 700), deaf(1, 600, 700)}), Cause::deaf, {1}, true);
}

TEST(Findings, WhoLacksSomethingIsNamedWithItAndEndsNothing) {
  for (const Cause lack : {Cause::cpu, Cause::memory, Cause::reader, Cause::launcher}) {
    expect_found(find({waiting(0, 5000), lacking(1, lack, 5000)}), lack, {1}, false);
    expect_found(find({lacking(0, lack, 5000)}), lack, {0}, false);
    expect_found(find({silent(0, 5000), waiting(1, 5000), lacking(2, lack, 5000)}), Cause::silent,
                 {0}, false);
    expect_found(find({at_work(0, 5000, 5000), lacking(1, lack, 5000)}), Cause::hung, {0}, false);
  }
}

TEST(Findings, OfThoseThatLackDifferentThingsOneCauseIsNamed) {
  expect_found(find({lacking(0, Cause::cpu), lacking(1, Cause::reader), lacking(2, Cause::cpu)}),
               Cause::cpu, {0, 2}, false);
}

TEST(Findings, WhoLackedSomethingHasItsTimeToHangAfterwards) {
  RankView view = lacking(1, Cause::none, 5000);
  view.last.idle = 40;
  expect_found(find({waiting(0, 5000), view}), Cause::hung, {1}, false);
  view.last.idle = 600;
  expect_found(find({waiting(0, 5000), view}), Cause::hung, {1}, true);
}

TEST(Findings, AMessageMayLieWithARankThatHasNoCpu) {
  expect_found(find({waiting(0, 650), starved(1, 3, 650)}), Cause::cpu, {1}, false);
  expect_found(find({starved(0, 3, 650), starved(1, 2, 650)}), Cause::cpu, {0, 1}, false);
  expect_found(find({starved(0, 10, 650), starved(1, 10, 650)}), Cause::network, {}, true);
  // It has a CPU now, but not for long enough.
  RankView late = starved(1, 3, 650);
  late.last.lacks = Cause::none;
  expect_found(find({waiting(0, 650), late}), Cause::network, {}, false);
}

TEST(Findings, AWordThatComesLateEndsNothing) {
  RankView late = silent(1, 5);
  late.last.still = 700;
  expect_found(find({waiting(0, 700), late}), Cause::silent, {1}, false);
}

TEST(Findings, ARankThatHungBeforeItWasSilentHasHadItsTime) {
  RankView view = at_work(1, 400, 500);
  view.silence = 200;
  expect_found(find({waiting(0, 700), view}), Cause::silent, {1}, true);
}

TEST(Findings, WhereAllWaitAndAnswerTheNetworkHasLostSomething) {
  const Finding finding = find({waiting(0, 650), waiting(1, 650)});
  expect_found(finding, Cause::network, {}, true);
  EXPECT_EQ(finding.place.phase, Phase::exchange);
}

TEST(Findings, RanksOfWhichNothingIsKnownEndNothing) {
  expect_found(find({waiting(0, 5000), hidden(1)}), Cause::hidden, {1}, false);
  expect_found(find({waiting(0, 5000), silent(1, 5000), hidden(2)}), Cause::silent, {1}, false);
}

TEST(Findings, AnEndIsPromisedWhereNoRankGoesOnByItself) {
  for (const auto& views : std::vector<std::vector<RankView>>{
           {waiting(0), silent(1)},
           {waiting(0), at_work(1, 69)},
           {waiting(0), deaf(1)},
           {waiting(0), waiting(1)},
       }) {
    EXPECT_TRUE(find(views).may_end);
    EXPECT_FALSE(find(views).ends);
    EXPECT_FALSE(find(views, {.warning = 60, .timeout = 0}).may_end);
    for (const RankView& other : {at_work(2, 1), lacking(2, Cause::cpu), hidden(2)}) {
      std::vector<RankView> all = views;
      all.push_back(other);
      EXPECT_FALSE(find(all).may_end);
    }
  }
  EXPECT_FALSE(find({waiting(0), starved(1, 3, 70)}).may_end);
  EXPECT_FALSE(find({waiting(0, 1), waiting(1, 1)}).may_end);
}

TEST(Findings, FinishedRanksAreNotWaitedFor) {
  expect_found(find({finished(0), finished(1)}), Cause::none, {}, false);
  expect_found(find({finished(0), waiting(1), silent(2)}), Cause::silent, {2}, false);
}

TEST(Findings, ATimeOutOfNothingNeverEnds) {
  const Limits never{.warning = 60, .timeout = 0};
  expect_found(find({waiting(0, 1e6), silent(1, 1e6)}, never), Cause::silent, {1}, false);
}

TEST(Limits, AShortTimeOutIsToldBefore) {
  const Limits brief{.warning = 60, .timeout = 6};
  EXPECT_DOUBLE_EQ(brief.warns_after(), 3);
  EXPECT_LT(brief.silent_after(), brief.warns_after());
  EXPECT_DOUBLE_EQ(kUsual.warns_after(), 60);
  EXPECT_DOUBLE_EQ(kUsual.beat(), 1);
}

TEST(OwnClock, DoesNotRunWhileItsProcessIsStopped) {
  system::OwnClock clock(100, 2);
  EXPECT_DOUBLE_EQ(clock.look(101), 1);
  EXPECT_DOUBLE_EQ(clock.look(201), 3);  // of a hundred seconds two
  EXPECT_DOUBLE_EQ(clock.look(202), 4);
  EXPECT_DOUBLE_EQ(clock.look(150), 4);
}

}  // namespace
}  // namespace cputrain::watch
