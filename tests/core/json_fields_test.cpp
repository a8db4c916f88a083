#include "core/json_fields.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "tests/support/refusal.h"

namespace cputrain {
namespace {

using nlohmann::json;

enum class Kind { plain, striped };
constexpr std::array<std::pair<Kind, std::string_view>, 2> kKinds{
    {{Kind::plain, "plain"}, {Kind::striped, "striped"}}};

struct Leg {
  int length = 1;
};

struct Table {
  std::string name = "desk";
  std::size_t drawers = 2;
  double height = 0.75, weight = std::numeric_limits<double>::quiet_NaN();
  bool round = false;
  Kind kind = Kind::striped;
  std::optional<int> year{};
  std::vector<int> sizes{1, 2};
  std::vector<std::string> owners{"a", "b"};
  std::vector<Leg> legs{{3}, {4}};
  std::optional<Leg> spare{};
};

void describe_leg(JsonMembers& f, Leg& leg) { f.need("length", leg.length, 1, 9); }

void describe_table(JsonMembers& f, Table& t) {
  f.format("table 1");
  f.need("name", t.name);
  f.need("drawers", t.drawers, 0, 9);
  f.need("height", t.height, 0, 2);
  f.exact("weight", t.weight);
  f.rare("round", t.round);
  f.word("kind", t.kind, kKinds);
  f.may("year", t.year, 1900, 2100);
  f.need("sizes", t.sizes, 1, 3, 1, 100);
  f.need("owners", t.owners, 3);
  f.objects("legs", t.legs, 1, 4, describe_leg, true);
  f.null_or_object("spare", t.spare, describe_leg);
}

Table read(const json& file) {
  const JsonFields fields(file, "it.json", "(it is needed); write it again");
  const auto table = value_of<Table>(fields, describe_table);
  fields.end();
  return table;
}

json written(const Table& table = {}) { return json(json_of(table, describe_table)); }

TEST(JsonFields, ADescriptionWritesAndReads) {
  const json file = written();
  EXPECT_EQ(json_text(json_of(Table{}, describe_table)),
            R"({"format":"table 1","name":"desk","drawers":2,"height":0.75,)"
            R"("weight":"nan:7ff8000000000000","kind":"striped","year":null,"sizes":[1,2],)"
            R"("owners":["a","b"],"legs":[{"length":3},{"length":4}],"spare":null})");
  EXPECT_EQ(written(read(file)), file);
  Table other;
  other.round = true;
  other.year = 1999;
  other.weight = -std::numeric_limits<double>::infinity();
  other.spare = Leg{7};
  EXPECT_EQ(read(written(other)).year, 1999);
  EXPECT_EQ(read(written(other)).weight, other.weight);
  EXPECT_EQ(read(written(other)).spare->length, 7);
  EXPECT_TRUE(read(written(other)).round);
}

TEST(JsonFields, WhatIsWrongIsNamedWithWhatIsAllowed) {
  const auto refused = [](const char* pointer, const json& value, const std::string& message) {
    json file = written();
    file[json::json_pointer(pointer)] = value;
    const std::string text = testing::refused(ExitCode::data, [&] { read(file); });
    EXPECT_EQ(text, "it.json" + message + " (it is needed); write it again");
  };
  refused("/name", 3, ": name must be a text of at most 65536 bytes");
  refused("/name", std::string(65537, 'x'), ": name must be a text of at most 65536 bytes");
  refused("/drawers", -1, ": drawers must be a whole number from 0 to 9");
  refused("/drawers", 2.0, ": drawers must be a whole number from 0 to 9");
  refused("/drawers", 18446744073709551615u, ": drawers must be a whole number from 0 to 9");
  refused("/drawers", nullptr, ": drawers is missing");
  refused("/height", 2.5, ": height must be a number from 0 to 2");
  refused("/weight", "nan:3ff0000000000000", ": weight must be a number, or a text for inf or NaN");
  refused("/round", 1, ": round must be true or false");
  refused("/kind", "dotted", ": kind must be one of plain, striped");
  refused("/year", 1800, ": year must be a whole number from 1900 to 2100");
  refused("/sizes", json::array(), ": sizes must be a list of 1 to 3 values");
  refused("/sizes/1", 1.5, ": sizes must be a list of whole numbers");
  refused("/owners", {"a", 3}, ": owners must be a list of texts");
  refused("/legs/1/length", 0, ", leg 2: length must be a whole number from 1 to 9");
  refused("/legs/0", 5, ", leg 1: is not an object");
  refused("/legs/0/size", 5, ", leg 1: size is not a field here, which are length");
  refused("/format", "table 2", ": format must be \"table 1\", not \"table 2\"");
  refused("/nmae", "x",
          ": nmae is not a field here, which are format, name, drawers, height, weight, round, "
          "kind, year, sizes, owners, legs, spare; did you mean name?");
}

TEST(JsonFields, WhatMayBeMissingHasItsDefault) {
  json file = written();
  file.erase("year");
  EXPECT_FALSE(read(file).year);
  file.erase("spare");
  EXPECT_THROW(read(file), Error);  // it may be null, and must be there
  const json two{{"a", 3}, {"b", nullptr}};
  const JsonFields fields(two, "it", "");
  EXPECT_EQ(fields.whole("a", 0, 9, 5), 3);
  EXPECT_EQ(fields.whole("b", 0, 9, 5), 5);
  EXPECT_EQ(fields.real("c", 0, 1, 0.5), 0.5);
  EXPECT_EQ(fields.text("c", "x"), "x");
  EXPECT_TRUE(fields.is_null("b"));
  const JsonFields strict(two, "it", "", /*null_is_missing=*/false);
  EXPECT_THROW(strict.whole("b", 0, 9, 5), Error);
  EXPECT_TRUE(strict.has("b"));
  EXPECT_FALSE(strict.has("c"));
  EXPECT_THROW(fields.is_null("c"), Error);
}

TEST(JsonFields, AMemberThatNeedNotBeRightCountsWhereItIs) {
  const json object{{"n", 3}, {"text", "128"}, {"half", 0.5}, {"odd", {1}}, {"on", true}};
  EXPECT_EQ(number_in(object, "n"), 3);
  EXPECT_FALSE(number_in(object, "n", 4));
  EXPECT_FALSE(number_in(object, "odd"));
  EXPECT_FALSE(number_in(object, "none"));
  EXPECT_EQ(whole_in(object, "text", 0, 200), 128);
  EXPECT_FALSE(whole_in(object, "half", 0, 200));
  EXPECT_EQ(text_in(object, "on"), "true");
  EXPECT_EQ(text_in(object, "text"), "128");
}

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
