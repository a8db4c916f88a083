#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace cputrain::report {

/// Loss and accuracy of a run's steps, as metrics.jsonl has them.
struct Curve {
  std::vector<double> images, loss, accuracy;  ///< images seen until then; accuracy as a part of 1
  /// Seconds of training until then; empty where a line lacks them. Steps without a line count as
  /// much as the next one that has a line.
  std::vector<double> seconds{};
};

/// By the step lines of a run's metrics (runfiles/metrics.h). At most `most` points remain, evenly
/// spread. Empty where there is no file, or none of a size that is read.
///
/// Images seen are those that the step lines have; without them, a step's images times the steps
/// since the line before.
Curve read_curve(const std::filesystem::path& metrics, std::size_t most = 300);

/// To five digits, which are more than a plot shows.
double rounded(double value);

}  // namespace cputrain::report
