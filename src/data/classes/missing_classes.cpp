#include "data/classes/missing_classes.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "core/text.h"

namespace cputrain::data {

std::string missing_classes(const DataSource& source, std::span<const std::uint32_t> samples) {
  const std::vector<std::string>& classes = source.dataset->classes();
  std::vector<bool> seen(classes.size());
  for (const std::uint32_t sample : samples) {
    seen[static_cast<std::size_t>(source.dataset->label(sample))] = true;
  }
  const std::set<std::string> empty(source.empty_classes.begin(), source.empty_classes.end());
  std::vector<std::string> missing;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (!seen[c] && !empty.contains(classes[c])) missing.push_back(printable(classes[c]));
  }
  if (missing.empty()) return {};
  return fmt::format("{} of {} classes ({})", missing.size(), classes.size() - empty.size(),
                     first_few(missing));
}

}  // namespace cputrain::data
