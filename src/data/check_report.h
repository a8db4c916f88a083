#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace cputrain::data {

/// What `data check` found, for printing and for JSON.
struct CheckReport {
  struct ClassCount {
    std::string name;
    std::size_t train = 0, validation = 0, test = 0;  ///< samples listed, damaged ones included
  };

  /// Images of a class that have one flaw.
  struct FlawRow {
    Flaw flaw = Flaw::none;
    std::string label;
    std::size_t images = 0, of = 0;     ///< those that can be read
    std::vector<std::string> examples;  ///< the first few
  };

  struct KnownFile {
    std::string path;
    bool as_published = false;
    std::string verdict;
  };

  std::size_t samples = 0;
  std::array<std::size_t, names(ReadStatus{}).size()>
      by_status{};                           ///< indexed by ReadStatus; [0] can be read
  std::vector<BadSample> bad;                ///< in the data set's order
  std::vector<std::string> wrong_extension;  ///< readable, but named as another format
  std::vector<std::string> warned;           ///< readable, but the decoder complained
  std::size_t ignored = 0;                   ///< files that are not read
  std::vector<UnreadFile> unread;            ///< these
  std::vector<std::string> empty_classes;    ///< classes without an image that can be read
  /// Samples with the same content, each group in the data set's order.
  std::vector<std::vector<std::string>> duplicates;
  /// Those of the groups that are in training and in validation (or test) both: accuracy is too
  /// good.
  std::vector<std::vector<std::string>> leaks, test_leaks;
  /// Those of the groups that are under several labels: "a/1.jpg (cat)".
  std::vector<std::vector<std::string>> conflicts;
  std::vector<FlawRow> flaws;  ///< by flaw, then by class
  std::size_t turned = 0;      ///< images that EXIF turns, whether that was applied or not
  std::vector<ClassCount> classes;
  std::vector<KnownFile> known;  ///< files of a set whose sizes or checksums are known
};

/// Samples of a source, by class: all its classes, in their order.
inline std::vector<CheckReport::ClassCount> count_classes(const DataSource& source) {
  std::vector<CheckReport::ClassCount> classes;
  for (const std::string& name : source.dataset->classes()) classes.push_back({name});
  const auto class_of = [&](std::uint32_t sample) -> CheckReport::ClassCount& {
    return classes[static_cast<std::size_t>(source.dataset->label(sample))];
  };
  for (const std::uint32_t sample : source.train) ++class_of(sample).train;
  for (const std::uint32_t sample : source.validation) ++class_of(sample).validation;
  for (const std::uint32_t sample : source.test) ++class_of(sample).test;
  return classes;
}

}  // namespace cputrain::data
