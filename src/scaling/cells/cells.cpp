#include "scaling/cells/cells.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "core/precision.h"

namespace cputrain::cells {

std::string status_name(CellStatus status) {
  for (const auto& [known, word] : kStatusWords) {
    if (known == status) return std::string(word);
  }
  return "";
}

bool is_forecast(CellStatus status) {
  return status == CellStatus::simulated || status == CellStatus::predicted;
}

bool is_device(const std::string& backend) {
  const auto named = [&](std::string_view word) { return backend.find(word) != std::string::npos; };
  constexpr std::array<std::string_view, 3> kOfOthers{"gpu", "nccl", "rocm"};  // in other tables
  return std::ranges::any_of(kDeviceColumns, named) || std::ranges::any_of(kOfOthers, named);
}

std::string precision_in_figures(const std::string& backend, const std::string& precision) {
  if (precision != word_of(Precision::f32)) return precision;
  return is_device(backend) ? "tf32" : "";
}

std::string backend_in_figures(const std::string& backend, const std::string& precision) {
  const std::string word = precision_in_figures(backend, precision);
  return backend + (backend.empty() || word.empty() ? "" : " ") + word;
}

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

std::optional<double> Prices::of(const std::string& backend, int cpus, double seconds) const {
  const double hours = seconds / 3600;
  for (const std::string& name : {backend, std::string()}) {
    const auto gpu = per_gpu_hour.find(name);
    if (is_device(backend) && gpu != per_gpu_hour.end()) return hours * cpus * gpu->second;
    if (const auto found = per_hour.find(name); found != per_hour.end()) {
      return hours * found->second;
    }
    if (const auto found = per_cpu_hour.find(name); found != per_cpu_hour.end()) {
      return hours * cpus * found->second;
    }
  }
  return std::nullopt;
}

std::optional<double> Prices::of(const Cell& cell) const {
  if (!cell.seconds_per_epoch) return std::nullopt;
  const int units = cell.gpus > 0 ? cell.gpus : cell.cpus;
  return of(cell.backend, units, *cell.seconds_per_epoch);
}

}  // namespace cputrain::cells
