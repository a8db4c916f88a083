#include "core/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace cputrain {
namespace {

/// What is wrong with the text; "" where nothing is.
std::string mistake(const std::string& text) {
  try {
    parse_strict_json(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

std::string nested(int depth) {
  const auto count = static_cast<std::size_t>(depth);
  return std::string(count, '[') + std::string(count, ']');
}

TEST(StrictJson, BuildsWhatTheLibraryBuilds) {
  for (const char* text :
       {"null", "true", "-3", "18446744073709551615", "0.1", "1e300", R"("\u00e9\n")", "[]", "{}",
        R"([1, [2, {"a": []}], {"b": {"c": [{}, {"d": 4}]}, "e": "f"}, false])",
        R"({"z": [[], [[]], {"y": {}}], "a": {"a": {"a": null}}, "m": [1.5, -2, "x"]})"}) {
    EXPECT_EQ(parse_strict_json(text), nlohmann::json::parse(text)) << text;
  }
  EXPECT_TRUE(parse_strict_json("7").is_number_unsigned());
  EXPECT_TRUE(parse_strict_json("7.0").is_number_float());
}

TEST(StrictJson, RefusesAKeyTwiceWhereverItStands) {
  for (const char* text :
       {R"({"a":1,"a":1})", R"({"b":{"a":1,"c":[],"a":2}})", R"([[{"a":{},"b":{},"a":{}}]])",
        R"({"\u0061":1,"a":2})", R"({"":1,"":2})"}) {
    EXPECT_NE(mistake(text).find("appears twice"), std::string::npos) << text;
  }
  EXPECT_EQ(mistake(R"({"a":{"a":[{"a":1},{"a":1}]}})"), "");  // of different objects
}

TEST(StrictJson, RefusesWhatAParserMayPassOver) {
  EXPECT_NE(mistake(std::string("{}\0", 3)).find("zero byte"), std::string::npos);
  EXPECT_NE(mistake(std::string("{\"a\0b\":1}", 9)).find("zero byte"), std::string::npos);
  for (const char* text : {"", " ", "{} {}", "[1,]", "{\"a\":1,}", "{'a':1}", "[1] // x", "NaN",
                           "1e999", "\"\xff\"", "{\"a\" 1}", "[", "tru"}) {
    EXPECT_NE(mistake(text), "") << text;
  }
}

TEST(StrictJson, IsNestedThirtyThreeDeepAtMost) {
  EXPECT_EQ(mistake(nested(33)), "");
  EXPECT_NE(mistake(nested(34)).find("too deeply"), std::string::npos);
  EXPECT_NE(mistake(std::string(1'000'000, '[')).find("too deeply"), std::string::npos);
}

// A parser that looks through a list at the end of every part of it needs hours for this.
TEST(StrictJson, TakesTimeInProportionToALongList) {
  std::string list = "[{\"k\":[]}", object = "{\"k\":{}";
  for (int i = 1; i < 300'000; ++i) {
    list += ",{\"k\":[]}";
    object += ",\"k" + std::to_string(i) + "\":{}";
  }
  EXPECT_EQ(parse_strict_json(list + "]").size(), 300'000u);
  EXPECT_EQ(parse_strict_json(object + "}").size(), 300'000u);
}

TEST(StrictJson, CountsKeysAndValues) {
  std::string object = "{\"k\":0";
  for (int i = 1; i <= 1'000'000; ++i) object += ",\"" + std::to_string(i) + "\":0";
  EXPECT_NE(mistake(object + "}").find("a million keys"), std::string::npos);
}

}  // namespace
}  // namespace cputrain
