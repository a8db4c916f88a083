#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/check_report.h"
#include "data/dataset.h"

namespace cputrain::datasets {

/// Counts by class the images that show little (Flaw). Each image once, however many samples show
/// it.
class FlawTally {
 public:
  explicit FlawTally(const data::Dataset&);

  /// An image that could be read.
  void add(std::uint32_t sample, data::Flaw);

  std::vector<data::CheckReport::FlawRow> rows() const;

  /// A sentence for each flaw that a tenth of a class has: fewer are no reason to stop before a
  /// training.
  std::vector<std::string> warnings() const;

 private:
  struct Count {
    std::size_t images = 0;
    std::vector<std::uint32_t> examples;
  };

  const data::Dataset& data_;
  std::vector<std::size_t> images_;                     // by label
  std::map<std::pair<data::Flaw, int>, Count> flawed_;  // by flaw and label
};

}  // namespace cputrain::datasets
