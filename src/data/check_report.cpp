#include "data/check_report.h"

namespace cputrain::data {

std::vector<CheckReport::ClassCount> count_classes(const DataSource& source) {
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
