#include "core/csv.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cputrain {
namespace {

/// RFC 4180, rules 6 and 7.
TEST(CsvCell, IsQuotedWhereItMustBe) {
  EXPECT_EQ(csv_cell(""), "");
  EXPECT_EQ(csv_cell("a cat"), "a cat");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell("a \"b\""), "\"a \"\"b\"\"\"");
}

TEST(CsvCell, IsOneLineThatSteersNoTerminal) {
  EXPECT_EQ(csv_cell("a\r\nb\tc"), "a\\r\\nb\\tc");
  EXPECT_EQ(csv_cell("\x1b[2Jcat"), "\\x1b[2Jcat");
  EXPECT_EQ(csv_cell("cat\xe2\x80\xae"
                     "gpj"),
            "cat\\u202egpj");
  EXPECT_EQ(csv_cell("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(csv_cell("\xe7\x8c\xab"), "\xe7\x8c\xab");
}

/// The signs are those of OWASP's page on CSV injection.
TEST(CsvCell, IsNoFormula) {
  for (const std::string text :
       {"=1+2", "+cmd", "-cat", "@sum", "=",  "+",      "-",   "-.",  "--1", "+-1",
        "-1-1", "-1e",  "-inf", "=1",   "@1", "-0x1p3", "＝1", "＋1", "－1", "＠a"}) {
    EXPECT_EQ(csv_cell(text), "'" + text);
  }
  EXPECT_EQ(csv_cell("@x,y"), "\"'@x,y\"");
  for (const char* text : {"a=b", "'=1", " =1", "1-2", "\\x1b=1"}) EXPECT_EQ(csv_cell(text), text);
}

TEST(CsvCell, ANumberStaysOne) {
  for (const char* text : {"-0.5", "+1", "-1", "-.5", "-1e-07", "+2.5E+3", "0.25", "-1."}) {
    EXPECT_EQ(csv_cell(text), text);
  }
}

using Names = std::vector<std::string>;

TEST(CsvHeader, HasEachNameOnce) {
  EXPECT_EQ(csv_header(Names{"file", "class", "cat", "=x"}),
            (Names{"file", "class", "cat", "'=x"}));
  EXPECT_EQ(csv_header(Names{"file", "class", "class", "dog", "file"}),
            (Names{"file", "class", "class (2)", "dog", "file (2)"}));
  // A name of its own is never taken by another's number.
  EXPECT_EQ(csv_header(Names{"class", "class", "class (2)", "class"}),
            (Names{"class", "class (3)", "class (2)", "class (4)"}));
}

TEST(CsvHeader, TellsNamesApartThatACellMakesEqual) {
  EXPECT_EQ(csv_header(Names{"=x", "'=x", "a,b", "a,b", "\x1b", "\\x1b"}),
            (Names{"'=x", "'=x (2)", "\"a,b\"", "\"a,b (2)\"", "\\x1b", "\\x1b (2)"}));
}

}  // namespace
}  // namespace cputrain
