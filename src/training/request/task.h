#pragma once

#include <string>
#include <vector>

namespace cputrain::training {

/// What the program was asked to do, as far as it matters below the command line. Without more
/// words it is a training.
struct Task {
  bool trains = true;
  bool evaluates = false;  ///< saved weights, on images of their size
  bool measures = false;   ///< times, which mean something on a real device alone
  bool computes = true;    ///< else a backend whose device is missing does no harm
  /// Somebody reads advice on flags and recipe. Nobody does where another program starts the
  /// training for its times.
  bool advised = true;
  /// All ranks are one job: many that do it alone would be silently wrong.
  bool one_job = true;
  std::string name = "train";        ///< for messages: "bench step". Ranks compare it
  std::vector<std::string> typed{};  ///< words that ask for it; a training needs none
};

}  // namespace cputrain::training
