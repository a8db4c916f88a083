#include "comm/watch/lookout.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace cputrain::watch {
namespace {

constexpr std::uint64_t kToken = 0x0123'4567'89ab'cdef;
constexpr int kRanks = 4;

Beat some_beat() {
  return {.kind = Beat::Kind::report,
          .rank = 3,
          .way = 2,
          .report = {.place = {77, 120, comm::Phase::checkpoint},
                     .waits = true,
                     .lacks = Cause::reader,
                     .still = 1.5,
                     .idle = 0.25,
                     .fair = 0.5,
                     .deaf = 7}};
}

TEST(Beat, ArrivesAsItWasSent) {
  const auto bytes = to_bytes(some_beat(), kToken);
  const auto read = beat_of(bytes, kToken, kRanks);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, Beat::Kind::report);
  EXPECT_EQ(read->rank, 3);
  EXPECT_EQ(read->way, 2u);
  EXPECT_EQ(read->report.place, (comm::Place{77, 120, comm::Phase::checkpoint}));
  EXPECT_TRUE(read->report.waits);
  EXPECT_EQ(read->report.lacks, Cause::reader);
  EXPECT_EQ(read->report.still, 1.5);
  EXPECT_EQ(read->report.idle, 0.25);
  EXPECT_EQ(read->report.fair, 0.5);
  EXPECT_EQ(read->report.deaf, 7);
}

TEST(Beat, OfAnotherJobIsNone) {
  EXPECT_FALSE(beat_of(to_bytes(some_beat(), kToken + 1), kToken, kRanks));
}

TEST(Beat, OfAnotherLengthIsNone) {
  const auto bytes = to_bytes(some_beat(), kToken);
  std::vector<std::byte> longer(bytes.begin(), bytes.end());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(beat_of(std::span(bytes).first(size), kToken, kRanks));
  }
  longer.push_back({});
  EXPECT_FALSE(beat_of(longer, kToken, kRanks));
}

TEST(Beat, WithNumbersOutOfTheirRangeIsNone) {
  const auto refuses = [](const Beat& beat) {
    return !beat_of(to_bytes(beat, kToken), kToken, kRanks);
  };
  Beat beat = some_beat();
  beat.rank = kRanks;
  EXPECT_TRUE(refuses(beat));
  beat.rank = -1;
  EXPECT_TRUE(refuses(beat));
  beat = some_beat();
  beat.kind = static_cast<Beat::Kind>(9);
  EXPECT_TRUE(refuses(beat));
  beat = some_beat();
  beat.report.place.phase = static_cast<comm::Phase>(200);
  EXPECT_TRUE(refuses(beat));
  for (const double wrong :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (double Report::*const seconds :
         {&Report::still, &Report::idle, &Report::fair, &Report::deaf}) {
      beat = some_beat();
      beat.report.*seconds = wrong;
      EXPECT_TRUE(refuses(beat));
    }
  }
  for (const Cause no_lack : {Cause::silent, Cause::slow, static_cast<Cause>(99)}) {
    beat = some_beat();
    beat.report.lacks = no_lack;
    EXPECT_TRUE(refuses(beat));
  }
}

}  // namespace
}  // namespace cputrain::watch
