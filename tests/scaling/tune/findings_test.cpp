// What tune suggests, and what its files and page have.

#include "scaling/tune/findings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cputrain::tune {
namespace {

using Words = std::vector<std::string>;

/// Rungs with these speeds, each compared with the first; gains are sure by `around`.
Ladder ladder_of(const std::string& flag, std::vector<std::pair<int, double>> speeds, int best,
                 int usual, ClimbEnd end = ClimbEnd::flat, double around = 0.01) {
  Ladder ladder{.flag = flag, .rungs = {}, .climb = {best, end}, .usual = usual};
  ladder.larger_alone = flag == "batch";
  for (const auto& [value, speed] : speeds) {
    Rung rung{.value = value, .images_per_second = speed, .rounds = {0.9 * speed, 1.1 * speed}};
    rung.planned = {1'000'000, 2'000'000};
    if (!ladder.rungs.empty()) {
      const double gain = speed / speeds.front().second - 1;
      rung.against = speeds.front().first;
      rung.gain = Gain{gain, {gain - around, gain + around}, 0.95, 7};
    }
    ladder.rungs.push_back(rung);
  }
  return ladder;
}

Findings made_findings() {
  Findings findings{.model = "dogcat", .data = "a <b> & \u00e9", .image_size = 64};
  findings.micro_batch = ladder_of("micro-batch", {{4, 100}, {8, 120}, {16, 100}}, 8, 16);
  findings.batch = ladder_of("batch", {{16, 80}, {32, 100}}, 32, 128, ClimbEnd::top);
  RateCurve curve{{1e-4, 1, 41}, {}, TestEnd::diverged, 1};
  for (int i = 0; i < 40; ++i)
    curve.losses.push_back(i < 10 ? 2 : i < 30 ? 2 - 0.05 * (i - 10) : 1);
  findings.rate = findings_of(curve, 128, 1000, 2);
  return findings;
}

std::string first_line(const Findings& findings) { return suggestion_of(findings).lines.front(); }

TEST(Suggestion, OfASizeIsOverWhatItIsWithoutTheFlag) {
  Findings findings{.micro_batch = ladder_of("micro-batch", {{4, 100}, {8, 120}}, 8, 4)};
  EXPECT_EQ(first_line(findings),
            "Micro-batch (how many images a rank computes at once): 8, with +20.0 % (19.0 to 21.0) "
            "images/s over the usual 4 (the next 2 sizes are quicker by less than 3 %, or not "
            "surely).");
  EXPECT_EQ(suggestion_of(findings).flags, (Words{"--micro-batch", "8"}));
  // The same speeds, which differ within the noise.
  findings.micro_batch = ladder_of("micro-batch", {{4, 100}, {8, 120}}, 8, 4, ClimbEnd::flat, 0.21);
  EXPECT_EQ(first_line(findings),
            "Micro-batch (how many images a rank computes at once): the usual 4 stays, as no other "
            "is surely quicker by 3 % or more (8 is +20.0 % (-1.0 to 41.0) over that). Leave "
            "--micro-batch out.");
  EXPECT_TRUE(suggestion_of(findings).flags.empty());
  findings.micro_batch = ladder_of("micro-batch", {{4, 100}, {8, 120}}, 8, 8);
  EXPECT_NE(first_line(findings).find("Leave --micro-batch out."), std::string::npos);
  EXPECT_TRUE(suggestion_of(findings).flags.empty());
}

TEST(Suggestion, OfABatchIsTheUsualOneUnlessALargerOnePays) {
  const auto of = [](Ladder ladder) { return Findings{.batch = std::move(ladder)}; };
  const Findings usual = of(ladder_of("batch", {{16, 80}, {64, 100}}, 64, 128));
  EXPECT_TRUE(suggestion_of(usual).flags.empty());
  EXPECT_NE(first_line(usual).find("The usual batch, 128, stays."), std::string::npos);
  EXPECT_EQ(suggestion_of(of(ladder_of("batch", {{16, 80}, {64, 100}}, 64, 16))).flags,
            (Words{"--batch", "64"}));
  const Findings unsure =
      of(ladder_of("batch", {{16, 80}, {64, 100}}, 64, 16, ClimbEnd::flat, 0.5));
  EXPECT_TRUE(suggestion_of(unsure).flags.empty());
  EXPECT_NE(first_line(unsure).find("leave --batch out"), std::string::npos);
  // It has not even room for 128.
  EXPECT_EQ(
      suggestion_of(of(ladder_of("batch", {{16, 80}, {64, 100}}, 64, 128, ClimbEnd::memory))).flags,
      (Words{"--batch", "64"}));
}

/// Speeds of a table and the gains beside them are of one figure.
TEST(FindingsDocument, SaysHowFiguresComeAboutAndWhatTheyShow) {
  const report::Section section = findings_document(made_findings(), false).sections.front();
  EXPECT_NE(section.remarks.front().find("times 1 + gain"), std::string::npos);
  const auto verdict = [&](std::size_t row) { return section.tables[0].rows[row].entries[2].text; };
  EXPECT_EQ(verdict(1), "faster");
  EXPECT_EQ(verdict_of({0.1, {-0.01, 0.2}}), report::Verdict::no_difference_shown);
  EXPECT_EQ(verdict_of({-0.1, {-0.2, -0.01}}), report::Verdict::slower);
}

TEST(Suggestion, HasTheFlagsToCopy) {
  const Findings findings = made_findings();
  const Suggestion suggestion = suggestion_of(findings);
  ASSERT_TRUE(findings.rate->advice);
  // The curve's rate is what --lr-scale makes of twice --lr.
  EXPECT_EQ(suggestion.flags,
            (Words{"--micro-batch", "8", "--lr", rate_text(findings.rate->advice->rate / 2)}));
}

/// The test changes both rates by one factor.
TEST(Suggestion, KeepsTheRatioOfTheBackbonesRate) {
  Findings findings = made_findings();
  findings.rate->backbone = 0.0625;
  const Suggestion suggestion = suggestion_of(findings);
  const double rate = findings.rate->advice->rate / 2;
  ASSERT_EQ(suggestion.flags.size(), 6u);
  EXPECT_EQ(suggestion.flags[4], "--backbone-lr");
  EXPECT_EQ(suggestion.flags[5], rate_text(rate / 16));
}

TEST(FindingsJson, HasLaddersAndTheCurve) {
  const nlohmann::ordered_json json = findings_json(made_findings());
  EXPECT_EQ(json["ladders"][0]["best"], 8);
  EXPECT_EQ(json["ladders"][0]["rungs"].size(), 3u);
  EXPECT_TRUE(json["ladders"][0]["rungs"][0]["gain"].is_null());
  EXPECT_TRUE(json["ladders"][0]["rungs"][1]["gain"]["pays"].get<bool>());
  EXPECT_EQ(json["ladders"][0]["rungs"][1]["gain"]["verdict"], "faster");
  EXPECT_EQ(json["ladders"][0]["rungs"][1]["images_per_second"], 120);
  EXPECT_EQ(json["ladders"][0]["advised"], 8);
  EXPECT_EQ(json["ladders"][0]["gain_over_usual"]["over"], 16);
  EXPECT_TRUE(json["ladders"][1]["advised"].is_null());
  EXPECT_FALSE(json["ladders"][0]["rungs"][2]["memory_measured"].is_object());
  EXPECT_EQ(json["ladders"][1]["end"], "top");
  EXPECT_EQ(json["rate"]["curve"].size(), 40u);
  EXPECT_EQ(json["rate"]["end"], "diverged");
  EXPECT_DOUBLE_EQ(json["rate"]["advice"]["range"][1].get<double>(), 0.1);
}

TEST(Suggestion, SaysWhyAFigureIsMissing) {
  Findings findings{.no_micro_batch = "a", .no_batch = "b", .no_rate = "c"};
  const Suggestion suggestion = suggestion_of(findings);
  EXPECT_EQ(suggestion.lines, (Words{"a", "b", "c"}));
  EXPECT_TRUE(suggestion.flags.empty());
}

}  // namespace
}  // namespace cputrain::tune
