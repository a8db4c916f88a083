#include "core/text.h"

#include <gtest/gtest.h>

namespace cputrain {
namespace {

TEST(CommandLineTest, AShellReadsTheSameWords) {
  EXPECT_EQ(command_line({"./cputrain", "--data", "my data", "it's", "", "a=b,c"}),
            "./cputrain --data 'my data' 'it'\\''s' '' a=b,c");
  EXPECT_EQ(quoted("$(rm)"), "'$(rm)'");
}

}  // namespace
}  // namespace cputrain
