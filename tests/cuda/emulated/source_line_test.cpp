#include "emulated/source_line.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>

namespace cputrain::emulated {
namespace {

[[gnu::noinline]] const void* caller() { return __builtin_return_address(0); }

std::string here(int line) { return "source_line_test.cpp:" + std::to_string(line); }

TEST(SourceLine, IsThatOfTheCall) {
  const void* address = caller();
  const int line = __LINE__ - 1;
  EXPECT_EQ(source_line(address), here(line));
}

int line_that_is_marked() {
  std::ifstream source(CPUTRAIN_LOADED_SOURCE);
  std::string line;
  for (int number = 1; std::getline(source, line); ++number) {
    if (line.ends_with("// LINE")) return number;
  }
  return 0;
}

TEST(SourceLine, IsFoundInLibrariesThatWereLoadedLater) {
  void* library = dlopen(CPUTRAIN_LOADED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  const auto address =
      reinterpret_cast<const void* (*)()>(dlsym(library, "cputrain_line_of_loaded_library"));
  ASSERT_TRUE(address);
  EXPECT_EQ(source_line(address()), "loaded_library.cpp:" + std::to_string(line_that_is_marked()));
  dlclose(library);
}

TEST(SourceLine, ConstantsAreTold) {
  static const int constant[2] = {1, 2};
  static int variable = 3;
  const int local = variable;
  EXPECT_TRUE(is_constant_of_program(&constant[variable % 2]));
  EXPECT_TRUE(is_constant_of_program("text"));
  EXPECT_FALSE(is_constant_of_program(&variable));
  EXPECT_FALSE(is_constant_of_program(&local));
}

TEST(SourceLine, OfNothingIsUnknown) { EXPECT_EQ(source_line(nullptr), "an unknown place"); }

}  // namespace
}  // namespace cputrain::emulated
