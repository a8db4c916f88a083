#include "scaling/report/forms/document.h"

#include <fmt/format.h>

#include <cmath>

#include "core/text.h"

namespace cputrain::report {

int DocumentTable::note(const std::string& text) {
  const auto [found, fresh] = numbers.emplace(text, static_cast<int>(notes.size()) + 1);
  if (fresh) notes.push_back(text);
  return found->second;
}

std::string figure_text(double value) {
  const double size = std::fabs(value);
  // Rounding first: 99.96 is 100, not 100.0.
  int decimals = 0;
  for (double limit = 99.95; decimals < 6 && size < limit; limit /= 10) ++decimals;
  return size == 0 ? "0" : fmt::format("{:.{}f}", value, decimals);
}

Entry figure_entry(std::optional<double> value, const std::function<std::string(double)>& text) {
  Entry entry{value ? text(*value) : kNotKnown};
  entry.value = value;
  return entry;
}

std::string processor_text(const std::string& cpu, int cores) {
  if (cores <= 0) return cpu;
  return cpu + (cpu.empty() ? "" : ", ") + counted(cores, "core");
}

}  // namespace cputrain::report
