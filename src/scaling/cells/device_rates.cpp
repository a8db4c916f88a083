#include "scaling/cells/device_rates.h"

#include <algorithm>
#include <cmath>

#include "core/precision.h"
#include "scaling/cells/axes.h"
#include "scaling/cells/explanation.h"
#include "training/request/flag_grammars.h"

namespace cputrain::cells {
namespace {

/// NVIDIA's data sheets of A100, H100, H200 and L40S.
constexpr std::array<ChipRates, 9> kChips{{{"NVIDIA A100-SXM4-40GB", 156e3, 312e3, 1555},
                                           {"NVIDIA A100-PCIE-40GB", 156e3, 312e3, 1555},
                                           {"NVIDIA A100-SXM4-80GB", 156e3, 312e3, 2039},
                                           {"NVIDIA A100 80GB PCIe", 156e3, 312e3, 1935},
                                           {"NVIDIA H100 80GB HBM3", 494.7e3, 989.4e3, 3350},
                                           {"NVIDIA H100 PCIe", 378e3, 756e3, 2000},
                                           {"NVIDIA H200", 494.7e3, 989.4e3, 4800},
                                           {"NVIDIA H200 NVL", 417.5e3, 835.5e3, 4800},
                                           {"NVIDIA L40S", 183e3, 362e3, 864}}};

std::string precision_of(const CellTable& table, const Cell& cell) {
  const std::string value = value_of(*listed_flag("precision"), table, cell);
  return value == kOwnDefault ? std::string(word_of(Precision::f32)) : value;
}

/// The rate of one chip at a precision; nothing for others.
std::optional<double> tensor_gflops(const ChipRates& rates, const std::string& precision) {
  constexpr double kProductsOfExact = 3;
  if (precision == word_of(Precision::bf16)) return rates.bf16_gflops;
  if (precision == word_of(Precision::f32)) return rates.tf32_gflops;
  if (precision == word_of(Precision::exact)) return rates.tf32_gflops / kProductsOfExact;
  return std::nullopt;
}

using End = CpuCount::Place;

/// CPUs beyond which a law of a row says nothing.
constexpr double kMostExtended = 100'000;

double least_of(const Cell& c) { return c.spread ? c.spread->low : *c.seconds_per_epoch; }
double median_of(const Cell& c) { return *c.seconds_per_epoch; }
double most_of(const Cell& c) { return c.spread ? c.spread->high : *c.seconds_per_epoch; }

bool is_repeated(const Cell& c) { return c.repeats.size() > 1; }

/// Beyond the row's end nothing was measured: what its law would need.
void extend(EqualCpus& equal, const std::vector<const Cell*>& row, double seconds) {
  const Cell &first = *row.front(), &last = *row.back();
  equal.perfect = std::max(first.cpus * median_of(first) / seconds, double(last.cpus));
  if (row.size() < 2) return;
  const Cell& before = *row[row.size() - 2];
  const double power =
      std::log(median_of(before) / median_of(last)) / std::log(double(last.cpus) / before.cpus);
  if (!(power > 0)) return;
  const double cpus = last.cpus * std::pow(median_of(last) / seconds, 1 / power);
  if (cpus <= kMostExtended) equal.continued = cpus;
}

}  // namespace

std::optional<ChipRates> chip_rates(const std::string& device) {
  const auto found = std::ranges::find(kChips, device, &ChipRates::name);
  return found == kChips.end() ? std::nullopt : std::optional(*found);
}

std::optional<double> counted_bytes(const CellTable& table, const Cell& cell) {
  const bool known = table.maps_per_image > 0 && cell.images_per_second.value_or(0) > 0;
  const bool frozen = table.options.contains("freeze") || cell.axes.contains("freeze");
  if (!known || frozen || !training::is_device(cell.backend)) return std::nullopt;
  constexpr double kMovesOfMap = 5;
  const double bytes = precision_of(table, cell) == word_of(Precision::bf16) ? 2 : 4;
  const double steps = *cell.images_per_second / cell.images_a_step();
  return *cell.images_per_second * kMovesOfMap * bytes * table.maps_per_image +
         steps * cell.gpus * kLeastParameterBytes * table.parameters;
}

std::optional<double> chip_share(const CellTable& table, const Cell& cell) {
  const auto rates = chip_rates(cell.device);
  const auto chip = rates ? tensor_gflops(*rates, precision_of(table, cell)) : std::nullopt;
  if (!training::is_device(cell.backend) || !cell.gflops || !chip) return std::nullopt;
  return *cell.gflops / (*chip * cell.gpus);
}

std::optional<double> memory_share(const CellTable& table, const Cell& cell) {
  const auto bytes = counted_bytes(table, cell);
  if (!bytes || cell.triad_gbs.value_or(0) <= 0) return std::nullopt;
  return *bytes / (*cell.triad_gbs * 1e9);
}

CpuCount cpus_for(const std::vector<double>& cpus, const std::vector<double>& times,
                  double seconds) {
  const auto reached = std::ranges::find_if(times, [&](double time) { return time <= seconds; });
  if (reached == times.end()) return {cpus.back(), End::more};
  const auto i = static_cast<std::size_t>(reached - times.begin());
  if (*reached == seconds) return {cpus[i]};
  if (i == 0) return {cpus.front(), End::fewer};
  const double part = std::log(times[i - 1] / seconds) / std::log(times[i - 1] / times[i]);
  return {cpus[i - 1] * std::pow(cpus[i] / cpus[i - 1], part)};
}

EqualCpus equal_cpus(const Cell& gpus, const std::vector<const Cell*>& row) {
  EqualCpus equal{.repeated = is_repeated(gpus), .status = gpus.status};
  std::vector<double> cpus;
  for (const Cell* cell : row) {
    cpus.push_back(cell->cpus);
    equal.repeated = equal.repeated && is_repeated(*cell);
    equal.status = std::max(equal.status, cell->status);
  }
  const auto place = [&](double (*time)(const Cell&), double seconds) {
    std::vector<double> times;
    for (const Cell* cell : row) times.push_back(time(*cell));
    return cpus_for(cpus, times, seconds);
  };
  equal.cpus = place(median_of, median_of(gpus));
  if (equal.cpus.place == End::more) extend(equal, row, median_of(gpus));
  equal.least = place(least_of, most_of(gpus));
  equal.most = place(most_of, least_of(gpus));
  return equal;
}

}  // namespace cputrain::cells
