#include "system/late_library.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace cputrain::system {
namespace {

constexpr const char* kMath = "libm.so.6";

/// What is said where this cannot be done.
template <class Work>
std::string why_not(const Work& work) {
  try {
    work();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  ADD_FAILURE() << "it was done";
  return "";
}

TEST(LateLibrary, FunctionsAreFoundByName) {
  double (*root)(double) = nullptr;
  LateLibrary(kMath, "/no/such/libm.so", "libc6").find("cbrt", root);
  ASSERT_NE(root, nullptr);
  EXPECT_DOUBLE_EQ(root(27), 3);
}

TEST(LateLibrary, ThePlaceAtTheBuildIsTriedAfterTheName) {
  double (*root)(double) = nullptr;
  LateLibrary("libno-such.so.9", kMath, "libc6").find("cbrt", root);
  EXPECT_NE(root, nullptr);
}

TEST(LateLibrary, WhatIsNotThereIsSaidWithARemedy) {
  const std::string text =
      why_not([] { LateLibrary("libno-such.so.9", "/no/such/lib.so", "libno-such-dev"); });
  EXPECT_TRUE(text.starts_with("libno-such.so.9, which cannot be loaded (libno-such.so.9: "))
      << text;
  EXPECT_TRUE(
      text.ends_with("; install it (Debian's libno-such-dev brings it), name its folder in "
                     "LD_LIBRARY_PATH"))
      << text;
}

TEST(LateLibrary, ALibraryWithoutTheFunctionIsAnother) {
  const LateLibrary library(kMath, kMath, "libc6");
  void (*none)() = nullptr;
  const std::string text = why_not([&] { library.find("no_such_function", none); });
  EXPECT_NE(text.find("cannot be loaded (it has no no_such_function)"), std::string::npos) << text;
}

}  // namespace
}  // namespace cputrain::system
