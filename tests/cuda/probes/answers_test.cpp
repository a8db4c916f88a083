#include "cuda/probes/answers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace cputrain::cuda::probes {
namespace {

TEST(Answers, TravelAsOneLine) {
  const Answer answer{.name = "sums",
                      .question = "E3",
                      .value = 0x1p-23,
                      .unit = "ulp",
                      .verdict = Verdict::differs,
                      .text = "two\nlines\tand a tab"};
  const std::string line = sent(answer);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Answer got = received(line, "bits");
  EXPECT_EQ(got.name, "sums");
  EXPECT_EQ(got.question, "E3");
  EXPECT_NEAR(*got.value, 0x1p-23, 1e-15);
  EXPECT_EQ(got.unit, "ulp");
  EXPECT_EQ(got.verdict, Verdict::differs);
  EXPECT_EQ(got.text, "two lines and a tab");
}

TEST(Answers, MayLackAllButANameAndWords) {
  const Answer got = received(sent({.name = "gpu", .text = "a name"}), "device");
  EXPECT_EQ(got.name, "gpu");
  EXPECT_FALSE(got.value);
  EXPECT_EQ(got.verdict, Verdict::none);
  EXPECT_EQ(printed(got), "gpu: a name");
}

TEST(Answers, WordsOfOthersAreKeptUnderTheGroup) {
  const Answer got = received("CUDA says something", "device");
  EXPECT_EQ(got.name, "device");
  EXPECT_EQ(got.text, "says CUDA says something");
}

TEST(Answers, VerdictsAllowForAShare) {
  EXPECT_EQ(verdict_of(5.6, 5.0, 0.15), Verdict::as_assumed);
  EXPECT_EQ(verdict_of(4.2, 5.0, 0.15), Verdict::differs);
  EXPECT_EQ(verdict_of(4.2, {}, 0.15), Verdict::none);
  EXPECT_EQ(verdict_of(NAN, 5.0, 0.15), Verdict::differs);
}

TEST(Answers, AreAnArrayInJson) {
  const Answer nothing{.name = "n\xff", .value = INFINITY, .text = "\"quoted\""};
  const Answer figure{.name = "rate",
                      .question = "E17",
                      .value = 2.5,
                      .unit = "TB/s",
                      .verdict = Verdict::as_assumed,
                      .text = "2.5 TB/s"};
  const auto json = nlohmann::json::parse(json_of({nothing, figure}));
  ASSERT_EQ(json.size(), 2u);
  for (const char* key : {"question", "value", "unit", "verdict"}) {
    EXPECT_TRUE(json[0][key].is_null()) << key;
  }
  EXPECT_EQ(json[0]["text"], "\"quoted\"");
  EXPECT_EQ(json[1], (nlohmann::json{{"name", "rate"},
                                     {"question", "E17"},
                                     {"value", 2.5},
                                     {"unit", "TB/s"},
                                     {"verdict", "as assumed"},
                                     {"text", "2.5 TB/s"}}));
}

}  // namespace
}  // namespace cputrain::cuda::probes
