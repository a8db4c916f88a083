#include "core/text.h"

#include <gtest/gtest.h>

namespace cputrain {
namespace {

TEST(DidYouMean, OffersTheNearestWordIfItIsNear) {
  const std::vector<std::string> words{"batch", "backend", "epochs"};
  EXPECT_EQ(did_you_mean("bacth", words), "; did you mean batch?");
  EXPECT_EQ(did_you_mean("epoch", words), "; did you mean epochs?");
  EXPECT_EQ(did_you_mean("zzzzzz", words), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
  EXPECT_EQ(did_you_mean("AdamW", std::vector<std::string>{"adam", "adamw"}),
            "; did you mean adamw?");
  EXPECT_EQ(did_you_mean("CAT", std::vector<std::string>{"Dog", "Cat"}), "; did you mean Cat?");
}

// Bytes of UTF-8 as Python's encode() gives them.
TEST(Escaped, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(escaped("conv2d/kernel (3)"), "conv2d/kernel (3)");
  EXPECT_EQ(escaped(std::string_view("a\x1b[2J\x07\0b\x7f", 9)), "a\\x1b[2J\\x07\\x00b\\x7f");
  EXPECT_EQ(escaped("a\nb\tc\rd\be"), "a\\nb\\tc\\rd\\x08e");
  EXPECT_EQ(escaped("\u009b31m\u0080\u009f"), "\\u009b31m\\u0080\\u009f");
  EXPECT_EQ(escaped("a\u202eb\u2066\u2069\u200e\u061c\u2028"),
            "a\\u202eb\\u2066\\u2069\\u200e\\u061c\\u2028");
}

TEST(Escaped, KeepsLettersOfAllScripts) {
  for (const char* name : {"K\xc3\xa4se", "\xe7\x8c\xab", "\xf0\x9f\x90\xb1", "\xc2\xa0",
                           "\xd9\x82\xd8\xb7", "it's \"50 %\", a\\b", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(escaped(name), name);
    EXPECT_TRUE(is_utf8(name)) << name;
  }
}

TEST(Escaped, ShowsBytesThatAreNoUtf8) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"caf\xe9", "caf\\xe9"},              // Latin-1
      {"\xff\xfe", "\\xff\\xfe"},           // never in UTF-8
      {"\x9b", "\\x9b"},                    // C1 as a byte
      {"\xc0\xaf", "\\xc0\\xaf"},           // too long a form of '/'
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      {"\xe7\x8c", "\\xe7\\x8c"},  // cut
      {"\xe7\x8cz", "\\xe7\\x8cz"},
      {"\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80"}};
  for (const auto& [bytes, shown] : cases) {
    EXPECT_EQ(escaped(bytes), shown);
    EXPECT_FALSE(is_utf8(bytes)) << shown;
  }
}

TEST(Escaped, LinesOfOursStay) { EXPECT_EQ(escaped_lines("a\nb\x1b\r\n"), "a\nb\\x1b\\r\n"); }

TEST(Printable, IsNotEndless) {
  EXPECT_EQ(printable("a\x1b"), "a\\x1b");
  EXPECT_EQ(printable(std::string(300, 'x')), std::string(300, 'x'));
  EXPECT_EQ(printable(std::string(1000, 'x')), std::string(300, 'x') + "...");
  std::string cats = "x";
  for (int i = 0; i < 200; ++i) cats += "\xe7\x8c\xab";
  EXPECT_EQ(printable(cats), cats.substr(0, 298) + "...");
  EXPECT_LE(printable(std::string(1000, '\x1b')).size(), 303u);
}

TEST(Columns, AreThoseOfATerminal) {
  EXPECT_EQ(columns_of("cat"), 3u);
  EXPECT_EQ(columns_of("K\xc3\xa4se"), 4u);
  EXPECT_EQ(columns_of("Ka\xcc\x88se"), 4u);  // a and a combining diaeresis, as macOS writes names
  EXPECT_EQ(columns_of("\xe7\x8c\xab"), 2u);
  EXPECT_EQ(in_columns("\xe7\x8c\xab", 5), "\xe7\x8c\xab   ");
  EXPECT_EQ(in_columns("\xe7\x8c\xab\xe7\x8c\xab", 3), "\xe7\x8c\xab ");
  EXPECT_EQ(in_columns("abcdef", 4), "abcd");
  EXPECT_EQ(in_columns("", 2), "  ");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,b", ','), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(split(",a,", ','), (std::vector<std::string>{"", "a", ""}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
}

TEST(Counted, HasAPluralForAllButOne) {
  EXPECT_EQ(counted(1, "image"), "1 image");
  EXPECT_EQ(counted(std::size_t{0}, "image"), "0 images");
  EXPECT_EQ(counted(2, "class"), "2 classes");
  EXPECT_EQ(counted(1, "class"), "1 class");
  EXPECT_EQ(plural("epoch", 0.5), "epochs");
  EXPECT_EQ(plural("epoch", 1.0), "epoch");
}

TEST(WithCommas, GroupsByThousands) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(1000, "image"), "1,000 images");
  EXPECT_EQ(with_commas(1, "image"), "1 image");
  EXPECT_EQ(with_commas(13217985), "13,217,985");
}

TEST(BytesText, UsesPowersOfTen) {
  EXPECT_EQ(bytes_text(std::size_t{999}), "999 bytes");
  EXPECT_EQ(bytes_text(52871940.0), "52.9 MB");
  EXPECT_EQ(bytes_text(4.4236e9), "4.42 GB");
}

TEST(EtaText, IsKerasForm) {
  EXPECT_EQ(eta_text(42.9), "42s");
  EXPECT_EQ(eta_text(250), "4:10");
  EXPECT_EQ(eta_text(3725), "1:02:05");
  EXPECT_EQ(eta_text(-1), "0s");
}

// A hundredth of 25,000 is 250: an image of the first ones says nothing of the rate.
TEST(ProgressText, HasAnEtaOnceTheRateIsKnown) {
  EXPECT_EQ(progress_text("Decoding", 4, 25000, 49), "Decoding 4/25,000");
  EXPECT_EQ(progress_text("Decoding", 249, 25000, 49), "Decoding 249/25,000");
  EXPECT_EQ(progress_text("Decoding", 250, 25000, 2), "Decoding 250/25,000 - ETA: 3:18");
  EXPECT_EQ(progress_text("Decoding", 25000, 25000, 50), "Decoding 25,000/25,000 - ETA: 0s");
  EXPECT_EQ(progress_text("Reading", 0, 0, 1), "Reading 0/0");
  EXPECT_EQ(progress_text("Reading", 1, 2, 3), "Reading 1/2 - ETA: 3s");
}

TEST(CommandLineTest, AShellReadsTheSameWords) {
  EXPECT_EQ(command_line({"./cputrain", "--data", "my data", "it's", "", "a=b,c"}),
            "./cputrain --data 'my data' 'it'\\''s' '' a=b,c");
  EXPECT_EQ(quoted("$(rm)"), "'$(rm)'");
}

}  // namespace
}  // namespace cputrain
