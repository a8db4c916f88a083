#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cputrain {

/// Somebody's published seconds per epoch.
struct ReferenceTable {
  std::string name;  ///< of the file
  std::vector<int> cpus;
  std::vector<std::size_t> batches;
  /// (batch, CPUs) to seconds; nothing where "n/a" was published.
  std::map<std::pair<std::size_t, int>, std::optional<double>> seconds;

  std::optional<double> at(std::size_t batch, int cpus) const;
};

/// Reads CSV with the columns cpus, batch and seconds_per_epoch, in any order, others beside them;
/// an empty time is "n/a". The file may be hostile: Error(data) says what is wrong and in which
/// line.
ReferenceTable read_reference(const std::filesystem::path&);
/// The same from text, for `name` in messages.
ReferenceTable parse_reference(const std::string& text, const std::string& name);

/// Batches whose rows are the same in every column, with two times or more: (256, 512).
std::vector<std::pair<std::size_t, std::size_t>> identical_rows(const ReferenceTable&);

}  // namespace cputrain
