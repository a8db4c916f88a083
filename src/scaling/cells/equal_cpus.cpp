#include "scaling/cells/equal_cpus.h"

#include <algorithm>
#include <cmath>

namespace cputrain::cells {
namespace {

using End = CpuCount::Place;

double least_of(const Cell& c) { return c.spread ? c.spread->min : *c.seconds_per_epoch; }
double median_of(const Cell& c) { return *c.seconds_per_epoch; }
double most_of(const Cell& c) { return c.spread ? c.spread->max : *c.seconds_per_epoch; }

bool is_repeated(const Cell& c) { return c.repeats.size() > 1; }

}  // namespace

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
  equal.least = place(least_of, most_of(gpus));
  equal.most = place(most_of, least_of(gpus));
  return equal;
}

}  // namespace cputrain::cells
