#include "core/error.h"
#include "tests/support/refusal.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace cputrain {
namespace {

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Fail, PutsMessagesTogetherAndLeavesWholeOnesAlone) {
  EXPECT_EQ(message_of([] { fail(ExitCode::data, "{}: {:.1f} images", "photos", 2.5); }),
            "photos: 2.5 images");
  EXPECT_EQ(message_of([] { fail(ExitCode::usage, "{ranks} stays"); }), "{ranks} stays");
}

TEST(Fail, HasItsCode) {
  testing::refused(ExitCode::data, [&] { fail(ExitCode::data, "{}", 1); });
}

}  // namespace
}  // namespace cputrain
