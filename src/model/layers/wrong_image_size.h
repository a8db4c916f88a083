#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/error.h"

namespace cputrain::model {

/// The image's size is wrong for the network, and not the network: Error(usage), which advises a
/// larger or a smaller one.
struct WrongImageSize : Error {
  WrongImageSize(std::string what, bool small)
      : Error(ExitCode::usage,
              fmt::format("{}; use a {} --image-size", what, small ? "larger" : "smaller")),
        complaint(std::move(what)),
        too_small(small) {}
  /// The same, said of what stands before.
  WrongImageSize in(const std::string& place) const {
    return {place + ": " + complaint, too_small};
  }

  std::string complaint;  ///< without the advice
  bool too_small;
};

}  // namespace cputrain::model
