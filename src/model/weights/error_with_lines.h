#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace cputrain::model {

/// With lines to be printed behind its message, each as it is: a program that a person copies.
class ErrorWithLines : public Error {
 public:
  ErrorWithLines(ExitCode code, const std::string& message, std::vector<std::string> lines)
      : Error(code, message), lines_(std::move(lines)) {}
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

}  // namespace cputrain::model
