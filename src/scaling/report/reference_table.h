#pragma once

#include <cstddef>

#include "scaling/cells/cells.h"

namespace cputrain::report {

/// Published seconds per epoch.
struct ReferenceTable {
  std::string name;  ///< the file's
  std::vector<int> cpus;
  std::vector<std::size_t> batches;
  /// (batch, CPUs) to seconds; nothing where "n/a" was published.
  std::map<std::pair<std::size_t, int>, std::optional<double>> seconds;
  /// What was trained; empty and 0 where the file does not say.
  std::string model{};
  int image_size = 0;
  std::size_t images = 0;  ///< an epoch

  std::optional<double> at(std::size_t batch, int cpus) const;
  /// What makes a sweep another experiment: "model (dogcat, ours is vgg16)"; empty where nothing
  /// that both say does.
  std::string other_than(const cells::CellTable& ours) const;
  /// Ours by theirs, for cells of CPUs with a global batch, of the same experiment.
  std::optional<double> ratio(const cells::CellTable& ours, const cells::Cell&) const;
};

/// Reads CSV with the columns cpus, batch and seconds_per_epoch, in any order, others beside them
/// (so report.csv of one series, with one split of each cell, is such a file); an empty time is
/// "n/a". Lines that begin with # are remarks; they may say what was trained:
/// "# model=dogcat, image_size=256, images=22500". The file may be hostile: Error(data) says what
/// is wrong and in which line.
ReferenceTable read_reference(const std::filesystem::path&);
/// The same from text, for `name` in messages.
ReferenceTable parse_reference(const std::string& text, const std::string& name);

/// Batches whose rows are the same in every column, with two times or more: (256, 512).
std::vector<std::pair<std::size_t, std::size_t>> identical_rows(const ReferenceTable&);

}  // namespace cputrain::report
