// Words that come from outside on their way to people.
#include "system/print.h"

#include <gtest/gtest.h>

namespace cputrain::system {
namespace {

TEST(Outlets, EscapeWhatIsPutInAndKeepTheirOwnLines) {
  const std::string name = "x\nAll is well\x1b[2J";
  EXPECT_EQ(formatted("{}: {}\n", name, 3), "x\\nAll is well\\x1b[2J: 3\n");
  EXPECT_EQ(formatted("{:>6}|{:<4}|{:.2f}", "a\tb", std::string_view("\xe7\x8c\xab"), 1.5),
            "  a\\tb|\xe7\x8c\xab  |1.50");
  ::testing::internal::CaptureStdout();
  print("{}\n{}\n", name, "ok");
  print_lines("one\ntwo\x1b\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "x\\nAll is well\\x1b[2J\nok\none\ntwo\\x1b\n");
  ::testing::internal::CaptureStderr();
  tell("warning: " + name + std::string("\0z", 2));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: x\\nAll is well\\x1b[2J\\x00z\n");
}

}  // namespace
}  // namespace cputrain::system
