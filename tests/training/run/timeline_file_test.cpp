#include "training/run/timeline_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace cputrain::training {
namespace {

using nlohmann::json;

/// What a rank sends whose spans lie one behind another, `seconds` each.
std::string rank_text(double first, double offset, std::size_t spans, double seconds) {
  json list = json::array();
  double end = first;
  for (std::size_t i = 0; i < spans; ++i) {
    const double begin = end;
    end = begin + seconds;
    list.push_back({"forward", 1, begin, end - begin});
  }
  return json{{"offset", offset}, {"lost", 0}, {"spans", list}}.dump();
}

std::vector<json> spans_of(const std::string& trace, int rank) {
  std::vector<json> spans;
  const json whole = json::parse(trace);
  for (const json& event : whole.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("pid") == rank) spans.push_back(event);
  }
  return spans;
}

std::int64_t nanoseconds(const json& microseconds) {
  const double exact = microseconds.get<double>() * 1000;
  EXPECT_NEAR(exact, std::round(exact), 1e-3);
  return std::llround(exact);
}

TEST(Timeline, KeepsFirstAndLastStepAndNoMoreThanARanksShare) {
  loop::Timeline timeline({.first = 2, .last = 5}, loop::Timeline::kMost / 2);
  for (std::uint64_t step = 1; step <= 6; ++step) {
    timeline.begin_step(step, "forward");
    for (const double begin = timeline.now(); timeline.now() - begin < 2e-6;) continue;
    timeline.end_step();
  }
  ASSERT_EQ(timeline.spans().size(), 2u);
  EXPECT_EQ(timeline.spans()[0].step, 2u);
  EXPECT_EQ(timeline.lost(), 2u) << "steps 4 and 5";
}

// After a year the clock's numbers are 4 ns apart; Perfetto drops what overlaps by one.
TEST(Timeline, SpansMeetAfterAYear) {
  const double year = 31'557'600.123456;
  const std::string trace = timeline_json(
      {rank_text(year, 0, 500, 1.23456e-4), rank_text(7 + 1e-7, 7 - year, 500, 3.3e-4)},
      {"a", "b"});
  for (const int rank : {0, 1}) {
    const std::vector<json> spans = spans_of(trace, rank);
    ASSERT_EQ(spans.size(), 500u);
    for (std::size_t i = 1; i < spans.size(); ++i) {
      const std::int64_t end = nanoseconds(spans[i - 1]["ts"]) + nanoseconds(spans[i - 1]["dur"]);
      ASSERT_EQ(nanoseconds(spans[i]["ts"]), end) << "rank " << rank << ", span " << i;
    }
  }
}

TEST(Timeline, IsInMicrosecondsOfRankZerosClockFromTheFirstSpanOn) {
  // Rank 1's clock shows 5 s more; its first span begins 2 ms after rank 0's.
  const std::string trace =
      timeline_json({rank_text(10, 0, 2, 0.25), rank_text(15.002, 5, 1, 0.125)}, {"a", "b"});
  const std::vector<json> zero = spans_of(trace, 0), one = spans_of(trace, 1);
  EXPECT_DOUBLE_EQ(zero[0]["ts"], 0);
  EXPECT_DOUBLE_EQ(zero[0]["dur"], 250'000);
  EXPECT_DOUBLE_EQ(zero[1]["ts"], 250'000);
  EXPECT_NEAR(one[0]["ts"], 2000, 1e-3);
  EXPECT_NEAR(one[0]["dur"], 125'000, 1e-3);
  EXPECT_EQ(json::parse(trace).at("otherData").at("clock_offset_us"), (json{0, 5e6}));
}

}  // namespace
}  // namespace cputrain::training
