#include "comm/watch/lookout.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "system/usage/work_meter.h"

namespace cputrain::watch {
namespace {

const Limits kLimits{.warning = 10, .timeout = 100};

/// Ranks on some machines, each with a socket on this one, at a time that the test says.
class Ranks {
 public:
  explicit Ranks(const std::vector<int>& nodes) {
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      sockets_.push_back(std::make_unique<Datagrams>(false));
    }
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      Team& team = *teams_.emplace_back(std::make_unique<Team>());
      team = {.token = 42, .rank = static_cast<int>(rank), .nodes = nodes};
      for (std::size_t other = 0; other < nodes.size(); ++other) {
        team.hosts.push_back("host" + std::to_string(nodes[other]));
        // The first leads nowhere, as one of several networks may.
        team.addresses.push_back(
            {address_of(this_machine(), 0), address_of(this_machine(), sockets_[other]->port())});
      }
      lookouts_.push_back(std::make_unique<Lookout>(team, *sockets_[rank], kLimits));
    }
  }

  /// A second, in which those that are not `gone` report and listen.
  void pass(double now, const std::vector<int>& gone = {}) {
    const auto each = [&](const auto& act) {
      for (std::size_t rank = 0; rank < lookouts_.size(); ++rank) {
        if (std::ranges::find(gone, static_cast<int>(rank)) == gone.end()) act(*lookouts_[rank]);
      }
    };
    each([&](Lookout& lookout) {
      lookout.report({.place = {7, 3, comm::Phase::exchange}, .waits = true, .still = now}, now);
    });
    for (int i = 0; i < 2; ++i) each([&](Lookout& lookout) { lookout.listen(now); });
  }

  Lookout& operator[](std::size_t rank) { return *lookouts_[rank]; }
  Datagrams& socket(std::size_t rank) { return *sockets_[rank]; }
  Team& team(std::size_t rank) { return *teams_[rank]; }

 private:
  std::vector<std::unique_ptr<Datagrams>> sockets_;
  std::vector<std::unique_ptr<Team>> teams_;
  std::vector<std::unique_ptr<Lookout>> lookouts_;
};

TEST(Team, TheDeputyIsOnAnotherMachineWhereThereIsOne) {
  EXPECT_EQ((Team{.nodes = {0, 0, 1, 1}}).deputy(), 2);
  EXPECT_EQ((Team{.nodes = {0, 0, 0}}).deputy(), 1);
  EXPECT_TRUE((Team{.rank = 3, .nodes = {0, 0, 1, 1}}).is_first_of_node());
  EXPECT_FALSE((Team{.rank = 4, .nodes = {0, 0, 1, 1, 1}}).is_first_of_node());
  EXPECT_FALSE((Team{.rank = 2, .nodes = {0, 0, 1, 1}}).is_first_of_node());
}

TEST(Lookout, ObserversKnowOfAllAndAllKnowOfThem) {
  Ranks ranks({0, 0, 1, 1});
  for (const double now : {1.0, 2.0}) ranks.pass(now);
  for (const std::size_t observer : {0, 2}) {
    const auto views = ranks[observer].views(2);
    ASSERT_EQ(views.size(), 4u);
    for (const RankView& view : views) {
      EXPECT_TRUE(view.heard);
      EXPECT_DOUBLE_EQ(view.still(), 2);
      EXPECT_LT(view.last.deaf, kLimits.silent_after());
    }
  }
  for (const std::size_t other : {1, 3}) {
    EXPECT_TRUE(ranks[other].hears(0, 2));
    EXPECT_TRUE(ranks[other].hears(2, 2));
    EXPECT_FALSE(ranks[other].judges(2));
  }
  EXPECT_TRUE(ranks[0].speaks(2));
  EXPECT_FALSE(ranks[2].speaks(2));
}

TEST(Lookout, TheDeputySpeaksWhereRankZeroIsSilent) {
  Ranks ranks({0, 0, 0});
  ranks.pass(1);
  for (double now = 2; now < 12; ++now) ranks.pass(now, {0});
  EXPECT_TRUE(ranks[1].speaks(11));
  EXPECT_FALSE(ranks[2].speaks(11));
  const Finding finding = find_stall(ranks[1].views(11), kLimits);
  EXPECT_EQ(finding.cause, Cause::silent);
  EXPECT_EQ(finding.ranks, std::vector<int>{0});
}

TEST(Lookout, WhoHearsNoObserverSpeaksForItsMachine) {
  Ranks ranks({0, 1, 2, 2});
  ranks.pass(1);
  for (double now = 2; now < 12; ++now) ranks.pass(now, {0, 1});
  EXPECT_TRUE(ranks[2].speaks(11));
  EXPECT_FALSE(ranks[3].speaks(11));
  EXPECT_TRUE(ranks[3].judges(11));
  EXPECT_EQ(find_stall(ranks[2].views(11), kLimits).ranks, (std::vector<int>{0, 1}));
}

TEST(Lookout, LostDatagramsAreNoSilence) {
  Ranks ranks({0, 0});
  for (double now = 1; now < 30; ++now) {
    ranks.pass(now, now == 5 || now == 9 ? std::vector{1} : std::vector<int>{});
    EXPECT_TRUE(ranks[0].hears(1, now));
  }
}

TEST(Lookout, ForeignDatagramsChangeNothing) {
  Ranks ranks({0, 0});
  ranks.pass(1);
  Datagrams stranger(false);
  const sockaddr_in to = address_of(this_machine(), ranks.socket(0).port());
  std::array<std::byte, kBeatBytes + 9> junk{};
  for (std::size_t size = 0; size <= junk.size(); ++size) {
    stranger.send(to, std::span(junk).first(size));
  }
  stranger.send(to, to_bytes({.kind = Beat::Kind::verdict, .rank = 1}, 43));
  ranks[0].listen(20);
  EXPECT_FALSE(ranks[0].verdict());
  EXPECT_FALSE(ranks[0].hears(1, 20));
}

/// The process of rank 1 is this one; a thread of it has the name of that which speaks.
TEST(Lookout, WhoIsSilentForWantOfACpuLacksOne) {
  Ranks ranks({0, 0});
  ranks.team(0).processes = {0, ::getpid()};
  ranks.pass(1);
  ranks.pass(30, {1});
  const auto view = [&] { return ranks[0].views(30)[1]; };
  EXPECT_DOUBLE_EQ(view().silence, 29);  // it has no such thread
  std::promise<void> begins;
  std::atomic<bool> ends = false;
  std::jthread busy([&] {
    ::pthread_setname_np(::pthread_self(), kThreadName);
    begins.get_future().wait();
    while (!ends) continue;
  });
  const auto sleeps = [] {
    return std::ranges::any_of(system::thread_states("self"), [](const auto& thread) {
      return thread.name == kThreadName && thread.state == 'S';
    });
  };
  while (!sleeps()) continue;
  EXPECT_DOUBLE_EQ(view().silence, 29);
  begins.set_value();
  while (sleeps()) continue;
  EXPECT_EQ(view().last.lacks, Cause::cpu);
  EXPECT_EQ(view().silence, 0);
  EXPECT_DOUBLE_EQ(view().still(), 30);
  EXPECT_EQ(find_stall(ranks[0].views(30), kLimits).cause, Cause::cpu);
  ends = true;
  busy.join();
  EXPECT_DOUBLE_EQ(view().silence, 29);
}

TEST(Lookout, AVerdictReachesAll) {
  Ranks ranks({0, 0, 0});
  ranks.pass(1);
  ranks[0].pass_verdict(3);
  for (const std::size_t rank : {1, 2}) {
    ranks[rank].listen(2);
    ASSERT_TRUE(ranks[rank].verdict());
    EXPECT_DOUBLE_EQ(*ranks[rank].verdict(), 3);
  }
}

TEST(Lookout, WhoSaysFarewellIsFinished) {
  Ranks ranks({0, 0});
  ranks.pass(1);
  ranks[1].farewell();
  ranks[0].listen(2);
  EXPECT_TRUE(ranks[0].views(50)[1].finished);
}

TEST(Lookout, AMachineThatWasNeverHeardIsHidden) {
  Ranks ranks({0, 0, 1});
  for (double now = 1; now < 30; ++now) ranks.pass(now, {1, 2});
  const auto views = ranks[0].views(29);
  EXPECT_FALSE(views[1].hidden);  // no firewall is within a machine
  EXPECT_TRUE(views[2].hidden);
}

}  // namespace
}  // namespace cputrain::watch
