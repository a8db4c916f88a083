#include "scaling/cells/cells.h"
#include "training/request/backend_words.h"

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

std::optional<double> Prices::of(const std::string& backend, int cpus, double seconds) const {
  const double hours = seconds / 3600;
  for (const std::string& name : {backend, std::string()}) {
    const auto gpu = per_gpu_hour.find(name);
    if (training::is_device(backend) && gpu != per_gpu_hour.end())
      return hours * cpus * gpu->second;
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
