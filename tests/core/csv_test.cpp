#include "core/csv.h"

#include <gtest/gtest.h>

namespace cputrain {
namespace {

/// RFC 4180, rules 5 to 7.
TEST(CsvField, IsQuotedWhereItMustBe) {
  EXPECT_EQ(csv_field(""), "");
  EXPECT_EQ(csv_field("a cat"), "a cat");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("a \"b\""), "\"a \"\"b\"\"\"");
  EXPECT_EQ(csv_field("a\r\nb"), "\"a\r\nb\"");
}

}  // namespace
}  // namespace cputrain
