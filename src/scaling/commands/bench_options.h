#pragma once

#include <fmt/format.h>

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
inline data::DataSource open_images(const training::TrainingFlags& flags,
                                    const training::Services& services, std::size_t images,
                                    std::uint64_t seed) {
  data::DataRequest request = flags.data_request(seed);
  if (flags.data.empty()) request.spec = fmt::format("synthetic:{}", 2 * images);
  request.limit_train = flags.limit_train.value_or(images);
  data::DataSource source = services.data.open(request);
  source.validation.clear();
  return source;
}

}  // namespace cputrain::commands
