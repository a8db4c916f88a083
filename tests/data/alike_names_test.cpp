#include "data/classes/alike_names.h"

#include <gtest/gtest.h>

namespace cputrain::data {
namespace {

using Names = std::vector<std::string>;

TEST(AlikeNames, WhatIsNotSeenIsNoDifference) {
  struct Case {
    const char* what;
    std::string one, other;
  };
  const std::string cafe = "caf\u00e9";
  const std::vector<Case> cases{{"a blank behind", "cat", "cat "},
                                {"a blank before", "cat", " cat"},
                                {"a tab", "cat", "cat\t"},
                                {"a line end", "cat", "cat\n"},
                                {"two blanks", "big cat", "big  cat"},
                                {"no-break space", "cat", "cat\u00a0"},
                                {"no-break space within", "big cat", "big\u00a0cat"},
                                {"narrow no-break space", "big cat", "big\u202fcat"},
                                {"ideographic space", "cat", "\u3000cat"},
                                {"line separator", "cat", "cat\u2028"},
                                {"zero-width space", "cat", "c\u200bat"},
                                {"zero-width joiner", "cat", "ca\u200dt"},
                                {"soft hyphen", "cat", "ca\u00adt"},
                                {"byte order mark", "cat", "\ufeffcat"},
                                {"word joiner", "cat", "cat\u2060"},
                                {"left-to-right mark", "cat", "cat\u200e"},
                                {"right-to-left override", "cat", "\u202ecat"},
                                {"isolate", "cat", "\u2066cat\u2069"},
                                {"variation selector", "\u2764", "\u2764\ufe0f"},
                                {"case", "cat", "CAT"},
                                {"case of another script", "\u03ba\u03cc\u03c3\u03bc\u03bf\u03c2",
                                 "\u039a\u038c\u03a3\u039c\u039f\u03a3"},
                                {"sharp s", "stra\u00dfe", "STRASSE"},
                                {"NFC and NFD", cafe, "cafe\u0301"},
                                {"order of marks", "q\u0307\u0323", "q\u0323\u0307"},
                                {"Hangul", "\ud55c", "\u1112\u1161\u11ab"},
                                {"wide letters", "cat", "\uff43\uff41\uff54"},
                                {"ligature", "fish", "\ufb01sh"},
                                {"leading zeros", "1", "001"},
                                {"zero", "0", "00"}};
  for (const auto& [what, one, other] : cases) {
    EXPECT_EQ(alike_key(one), alike_key(other)) << what;
    EXPECT_EQ(alike_names(Names{"x", one, "y", other}), (std::vector<Names>{{one, other}})) << what;
  }
  for (const auto& [what, one, other] : std::vector<Case>{{"accent", cafe, "cafe"},
                                                          {"letters", "cat", "cut"},
                                                          {"a blank within", "big cat", "bigcat"},
                                                          {"underscore", "big cat", "big_cat"},
                                                          {"numbers", "1", "10"},
                                                          {"decimals", "3.5", "3.05"},
                                                          {"zeros in a word", "n01", "n1"},
                                                          {"scripts", "\u732b", "\u72ac"}}) {
    EXPECT_NE(alike_key(one), alike_key(other)) << what;
    EXPECT_EQ(alike_warning(Names{one, other}), "") << what;
  }
}

TEST(AlikeNames, DifferencesAreShown) {
  const std::vector<std::pair<Names, std::string>> cases{
      {{"cat", "cat "}, "'cat' and 'cat\\x20'"},
      {{"cat", "cat\u00a0"}, "'cat' and 'cat\\u00a0'"},
      {{"caf\u00e9", "cafe\u0301"}, "'caf\\u00e9' and 'cafe\\u0301'"},
      {{"caf\u00e9", "caf\u00e9\u200b"}, "'caf\u00e9' and 'caf\u00e9\\u200b'"},
      {{"Cat", "cat", "CAT"}, "'Cat', 'cat' and 'CAT'"},
      {{"\u732b", "\ufeff\u732b"}, "'\u732b' and '\\ufeff\u732b'"},
      {{"a\x1b", "a\x1b "}, "'a\\x1b' and 'a\\x1b\\x20'"},
      {{"\U0001d44e", "a"}, "'\\U0001d44e' and 'a'"},
      {{"aa", "aaa"}, "'aa' and 'aaa'"}};
  for (const auto& [names, shown] : cases) EXPECT_EQ(shown_apart(names), shown);
}

TEST(AlikeNames, AWarningNamesTheFirstGroups) {
  EXPECT_EQ(alike_warning(Names{"a", "b"}), "");
  Names names;
  for (int i = 0; i < 7; ++i) {
    names.push_back("class" + std::to_string(i));
    names.push_back("Class" + std::to_string(i));
  }
  const std::string text = alike_warning(names);
  EXPECT_NE(text.find("'class0' and 'Class0'"), std::string::npos) << text;
  EXPECT_NE(text.find("'class4' and 'Class4'; 2 more"), std::string::npos) << text;
}

using Places = std::vector<std::optional<std::size_t>>;

TEST(AlikeNames, AreFoundWhereNothingElseIsMeant) {
  const Names known{"caf\u00e9", "tea", "Milk"};
  const Names names{"milk", "tea", "cafe\u0301"};
  const NameMatch match = match_names(names, known);
  EXPECT_EQ(match.place, (Places{2, 1, 0}));
  EXPECT_EQ(match.alike, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(alike_text(match, names, known), "'milk' as 'Milk', 'cafe\\u0301' as 'caf\\u00e9'");

  const auto places = [](const Names& from, const Names& among) {
    return match_names(from, among).place;
  };
  EXPECT_EQ(places({"cat", "dog"}, {"dog", "cat"}), (Places{1, 0}));
  EXPECT_EQ(places({"cat", "CAT"}, {"cat", "dog"}), (Places{0, std::nullopt}))
      << "an exact name takes the place, so another that looks alike means something else";
  EXPECT_EQ(places({"Cat", "CAT"}, {"cat", "dog"}), (Places{std::nullopt, std::nullopt}));
  EXPECT_EQ(places({"cat"}, {"Cat", "CAT"}), (Places{std::nullopt}));
  EXPECT_EQ(places({"cat", "Cat"}, {"Cat", "cat"}), (Places{1, 0}));
  EXPECT_EQ(places({"caf\xe9"}, {"caf\xe9", "x"}), (Places{0})) << "bytes that are not UTF-8";
}

TEST(AlikeNames, TheComposedFormIsThatOfMostSystems) {
  EXPECT_EQ(composed("cafe\u0301"), "caf\u00e9");
  EXPECT_EQ(composed("caf\u00e9"), "caf\u00e9");
  EXPECT_EQ(composed(" Cat\u200b"), " Cat\u200b") << "nothing else is changed";
  EXPECT_EQ(composed("caf\xe9"), "caf\xe9");
}

}  // namespace
}  // namespace cputrain::data
