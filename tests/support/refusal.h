#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace cputrain::testing {

/// What is said where this is refused with this exit code; empty where nothing is.
template <class Work>
std::string refusal_of(ExitCode code, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

/// The same of what has to be refused.
template <class Work>
std::string refused(ExitCode code, const Work& work) {
  const std::string text = refusal_of(code, work);
  EXPECT_NE(text, "") << "it was not refused";
  return text;
}

}  // namespace cputrain::testing
