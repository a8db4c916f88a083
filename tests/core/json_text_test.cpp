#include "core/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/text.h"

namespace cputrain {
namespace {

TEST(JsonText, IsUtf8ThatSteersNoTerminalAndReadsBackTheSame) {
  for (const char* text : {"a\x1b[2J\n\t\x7f", "\xc2\x9b\xe2\x80\xae\xe2\x80\xa8",
                           "K\xc3\xa4se \xe7\x8c\xab \"q\" \\"}) {
    const nlohmann::ordered_json value{{text, {text, 1, nullptr}}};
    for (const int indent : {-1, 2}) {
      const std::string written = json_text(value, indent);
      EXPECT_EQ(escaped_lines(written), written);
      EXPECT_EQ(nlohmann::ordered_json::parse(written), value);
    }
  }
  EXPECT_EQ(json_text(nlohmann::json("\x7f\xc2\x9b")), "\"\\u007f\\u009b\"");
  EXPECT_EQ(json_text(nlohmann::json("K\xc3\xa4se")), "\"K\xc3\xa4se\"");
}

TEST(JsonText, TellsBytesThatAreNoUtf8Apart) {
  const nlohmann::json value{{"a\xff", {{"file", "caf\xe9"}, {"other", "caf\xea"}}}};
  EXPECT_EQ(json_text(value), R"({"a\\xff":{"file":"caf\\xe9","other":"caf\\xea"}})");
}

}  // namespace
}  // namespace cputrain
