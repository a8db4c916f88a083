// What tune suggests, and what its files and page have.

#include "scaling/tune/findings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cputrain::tune {
namespace {

using Words = std::vector<std::string>;

/// Rungs with these speeds, each compared with the first.
Ladder ladder_of(const std::string& flag, std::vector<std::pair<int, double>> speeds, int best,
                 ClimbEnd end = ClimbEnd::flat) {
  Ladder ladder{flag, {}, {best, end}, ""};
  for (const auto& [value, speed] : speeds) {
    Rung rung{.value = value, .images_per_second = {0.9 * speed, speed, 1.1 * speed}};
    rung.planned = {1'000'000, 2'000'000};
    if (!ladder.rungs.empty()) {
      const double gain = speed / speeds.front().second - 1;
      rung.against = speeds.front().first;
      rung.gain = Gain{gain, {gain - 0.01, gain + 0.01}, 0.95, 3};
    }
    ladder.rungs.push_back(rung);
  }
  return ladder;
}

Findings made_findings() {
  Findings findings{.facts = {.model = "dogcat", .data = "a <b> & \u00e9", .image_size = 64}};
  findings.micro_batch = ladder_of("micro-batch", {{4, 100}, {8, 120}, {16, 121}}, 8);
  findings.usual_micro_batch = 16;
  findings.batch = ladder_of("batch", {{16, 80}, {32, 100}}, 32, ClimbEnd::top);
  findings.usual_batch = 128;
  RateCurve curve{{1e-4, 1, 41}, {}, TestEnd::diverged, 1};
  for (int i = 0; i < 40; ++i)
    curve.losses.push_back(i < 10 ? 2 : i < 30 ? 2 - 0.05 * (i - 10) : 1);
  findings.rate = findings_of(curve, 128, 1000, 2);
  return findings;
}

TEST(ChosenBatch, IsTheUsualOneUnlessALargerOnePays) {
  const auto end = ClimbEnd::flat;
  EXPECT_EQ(chosen_batch(ladder_of("batch", {{16, 1}, {64, 2}}, 64, end), 128), 128u);
  EXPECT_EQ(chosen_batch(ladder_of("batch", {{16, 1}, {64, 2}}, 64, end), 32), 64u);
  // It has not even room for 128.
  EXPECT_EQ(chosen_batch(ladder_of("batch", {{16, 1}, {64, 2}}, 64, ClimbEnd::memory), 128), 64u);
}

TEST(Suggestion, HasTheFlagsToCopy) {
  const Findings findings = made_findings();
  const Suggestion suggestion = suggestion_of(findings);
  ASSERT_TRUE(findings.rate->advice);
  // The curve's rate is what --lr-scale makes of twice --lr.
  EXPECT_EQ(suggestion.flags, (Words{"--micro-batch", "8", "--batch", "128", "--lr",
                                     rate_text(findings.rate->advice->rate / 2)}));
}

/// The test changes both rates by one factor.
TEST(Suggestion, KeepsTheRatioOfTheBackbonesRate) {
  Findings findings = made_findings();
  findings.rate->backbone = 0.0625;
  const Suggestion suggestion = suggestion_of(findings);
  const double rate = findings.rate->advice->rate / 2;
  ASSERT_EQ(suggestion.flags.size(), 8u);
  EXPECT_EQ(suggestion.flags[6], "--backbone-lr");
  EXPECT_EQ(suggestion.flags[7], rate_text(rate / 16));
}

TEST(Suggestion, SaysWhyAFigureIsMissing) {
  Findings findings{.no_micro_batch = "a", .no_batch = "b", .no_rate = "c"};
  const Suggestion suggestion = suggestion_of(findings);
  EXPECT_EQ(suggestion.lines, (Words{"a", "b", "c"}));
  EXPECT_TRUE(suggestion.flags.empty());
}

TEST(FindingsJson, HasLaddersAndTheCurve) {
  const nlohmann::ordered_json json = findings_json(made_findings());
  EXPECT_EQ(json["ladders"][0]["best"], 8);
  EXPECT_EQ(json["ladders"][0]["rungs"].size(), 3u);
  EXPECT_TRUE(json["ladders"][0]["rungs"][0]["gain"].is_null());
  EXPECT_TRUE(json["ladders"][0]["rungs"][1]["gain"]["pays"].get<bool>());
  EXPECT_FALSE(json["ladders"][0]["rungs"][2]["memory_measured"].is_object());
  EXPECT_EQ(json["ladders"][1]["end"], "top");
  EXPECT_EQ(json["rate"]["curve"].size(), 40u);
  EXPECT_EQ(json["rate"]["end"], "diverged");
  EXPECT_DOUBLE_EQ(json["rate"]["advice"]["range"][1].get<double>(), 0.1);
}

TEST(FindingsPage, HasTablesPlotsAndFigures) {
  const std::string page = findings_page(made_findings());
  const auto has = [&](const std::string& text) { return page.find(text) != std::string::npos; };
  for (const char* text : {"Tuning dogcat at 64x64", "a &lt;b&gt; &amp;",
                           "Flags to copy:", "120 (108 to 132)", "+20.0 % (19.0 to 21.0) over 4"}) {
    EXPECT_TRUE(has(text)) << text;
  }
  if (has("built without Chart.js")) return;
  for (const char* plot : {"tune-micro-batch", "tune-batch", "tune-rate"}) {
    EXPECT_TRUE(has("data-plot=\"" + std::string(plot) + '"')) << plot;
    EXPECT_TRUE(has('\'' + std::string(plot) + '\'')) << plot << " is drawn by no script";
  }
}

TEST(FindingsDocument, HasTheStepsOfACurveOnAPageAlone) {
  const auto tables = [](bool whole) {
    return findings_document(made_findings(), whole).sections.back().tables.size();
  };
  EXPECT_EQ(tables(true), 1u);
  EXPECT_EQ(tables(false), 0u);
}

}  // namespace
}  // namespace cputrain::tune
