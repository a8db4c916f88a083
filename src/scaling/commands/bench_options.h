#pragma once

#include <optional>

#include "cli/command.h"

namespace cputrain::commands {

/// What measurements are asked for beside what a training is.
struct BenchOptions : cli::Options {
  std::optional<int> repeat;
  int repeats() const { return repeat.value_or(5); }
};

/// So many training images, or --limit-train: synthetic ones where no data are named. They are
/// drawn by seed, since the first of a folder may be all of one class.
data::DataSource open_images(const training::TrainingFlags&, const training::Services&,
                             std::size_t images, std::uint64_t seed);

}  // namespace cputrain::commands
