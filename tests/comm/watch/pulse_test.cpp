#include "comm/pulse.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <thread>

#include "comm/communicator.h"
#include "comm/watch/watch.h"

namespace cputrain::comm {
namespace {

using Meeting = Pulse::Meeting;

TEST(Pulse, TellsWhereItsRankIs) {
  Pulse pulse;
  EXPECT_EQ(pulse.place(), (Place{0, 0, Phase::start}));
  pulse.at(Phase::forward, 1'000'000'000'000);
  EXPECT_EQ(pulse.place(), (Place{0, 1'000'000'000'000, Phase::forward}));
  pulse.at(Phase::end);
  EXPECT_EQ(pulse.place(), (Place{0, 1'000'000'000'000, Phase::end}));
}

TEST(Pulse, PlacesAreOrderedByCallsStepsAndPhases) {
  EXPECT_LT((Place{1, 9, Phase::end}), (Place{2, 1, Phase::start}));
  EXPECT_LT((Place{1, 1, Phase::end}), (Place{1, 2, Phase::start}));
  EXPECT_LT((Place{1, 1, Phase::forward}), (Place{1, 1, Phase::exchange}));
}

TEST(Pulse, WaitsWithinAMeeting) {
  Pulse pulse;
  EXPECT_FALSE(pulse.waits());
  {
    const Meeting meeting(pulse, Meeting::kOfAll);
    EXPECT_TRUE(pulse.waits());
    EXPECT_EQ(pulse.place().calls, 1u);
  }
  EXPECT_FALSE(pulse.waits());
}

TEST(Pulse, AHelperThatWaitsCountsOnceItsRankHasComeToTheExchange) {
  Pulse pulse;
  pulse.at(Phase::backward, 3);
  std::jthread([&] {
    const Meeting meeting(pulse);
    EXPECT_TRUE(pulse.helper_waits());
    EXPECT_FALSE(pulse.waits());
    pulse.at(Phase::exchange, 3);
    EXPECT_TRUE(pulse.waits());
  }).join();
  EXPECT_FALSE(pulse.waits());
}

TEST(Pulse, EveryPhaseHasAName) {
  EXPECT_EQ(name_of(Phase::start), "start");
  EXPECT_EQ(name_of(Phase::end), kPhaseNames.back());
  const std::set<std::string_view> names(kPhaseNames.begin(), kPhaseNames.end());
  EXPECT_EQ(names.size(), kPhaseNames.size());
  EXPECT_FALSE(names.contains(""));
}

TEST(WatchedCommunicator, CountsTheCallsOfAllRanks) {
  const auto ranks = watch::watched(make_solo());
  const auto pulse = ranks->share_pulse();
  double number = 1;
  ranks->sum(Array::of<double>({&number, 1}));
  ranks->barrier();
  EXPECT_EQ(ranks->gather("x"), std::vector<std::string>{"x"});
  ranks->node_memory().barrier();  // of some
  EXPECT_EQ(pulse->place().calls, 3u);
}

TEST(WatchedCommunicator, RanksOfAMachineMeetForItsMemory) {
  const auto ranks = watch::watched(make_solo());
  const Pulse& pulse = ranks->pulse();
  auto block = ranks->node_memory().allocate(8);
  EXPECT_EQ(pulse.moves(), 2u);
  EXPECT_GE(block->bytes().size(), 8u);
  block.reset();  // MPI gives it back when all have come
  EXPECT_EQ(pulse.moves(), 4u);
  EXPECT_EQ(ranks->node_memory().folder_of_large(8), "");
  EXPECT_EQ(pulse.moves(), 6u);
}

TEST(WatchedCommunicator, ItsEndIsAPhase) {
  auto ranks = watch::watched(make_solo());
  const auto pulse = ranks->share_pulse();
  ranks.reset();
  EXPECT_EQ(pulse->place().phase, Phase::end);
}

}  // namespace
}  // namespace cputrain::comm
