#include "scaling/simulation/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>

#include "core/json_fields.h"
#include "system/bounded_file.h"

namespace cputrain::simulation {
namespace {

constexpr int kMostSizes = 64, kMostLayers = 10'000, kMostActive = 64;

std::vector<double> between(const std::vector<double>& a, const std::vector<double>& b,
                            double part) {
  std::vector<double> values(a.size());
  std::ranges::transform(a, b, values.begin(),
                         [&](double x, double y) { return std::lerp(x, y, part); });
  return values;
}

CostsWhenActive between(const CostsWhenActive& a, const CostsWhenActive& b, int active) {
  const double part = static_cast<double>(active - a.active) / (b.active - a.active);
  CostsWhenActive costs{.active = active,
                        .fma_gflops = std::lerp(a.fma_gflops, b.fma_gflops, part),
                        .triad_gbs = std::lerp(a.triad_gbs, b.triad_gbs, part),
                        .update_seconds_per_number = std::lerp(a.update_seconds_per_number,
                                                               b.update_seconds_per_number, part),
                        .sum_gbs = std::lerp(a.sum_gbs, b.sum_gbs, part),
                        .spread = std::lerp(a.spread, b.spread, part),
                        .layers = {}};
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    costs.layers.push_back({a.layers[i].name,
                            between(a.layers[i].forward, b.layers[i].forward, part),
                            between(a.layers[i].backward, b.layers[i].backward, part)});
  }
  return costs;
}

/// The last one against those before it.
void check_after_first(const std::vector<CostsWhenActive>& all, const JsonFields& file) {
  const CostsWhenActive& last = all.back();
  if (all.size() == 1) return;
  const CostsWhenActive& before = all[all.size() - 2];
  if (before.threads > 1) file.wrong("only the last one may have more than one thread per rank");
  if (last.threads == 1 && last.active <= before.active) file.wrong("active must ascend");
  if (!std::ranges::equal(last.layers, before.layers, {}, &LayerCost::name, &LayerCost::name)) {
    file.wrong("layers must be the same ones in each entry");
  }
}

void describe_active(JsonMembers& f, CostsWhenActive& costs, std::size_t sizes) {
  f.need("active", costs.active, 1, 1'000'000);
  f.need("threads", costs.threads, 1, 1'000'000);
  f.need("fma_gflops", costs.fma_gflops, 1e-6, 1e9);
  f.need("triad_gbs", costs.triad_gbs, 1e-6, 1e9);
  f.need("update_seconds_per_number", costs.update_seconds_per_number, 0, 1);
  f.need("sum_gbs", costs.sum_gbs, 1e-6, 1e9);
  f.need("spread", costs.spread, 0, 10);
  f.need("drift", costs.drift, 0, 1e6);
  f.objects("layers", costs.layers, 1, kMostLayers, [&](JsonMembers& l, LayerCost& layer) {
    l.need("name", layer.name);
    l.need("forward", layer.forward, sizes, sizes, 0, 1e6);
    l.need("backward", layer.backward, sizes, sizes, 0, 1e6);
  });
}

void check_table(const CostTable& table, const JsonFields& file) {
  if (std::ranges::adjacent_find(table.sizes, std::greater_equal()) != table.sizes.end()) {
    file.wrong("sizes must ascend");
  }
  if (table.alone().active != 1 || table.alone().threads != 1) {
    file.wrong("by_active must begin with one rank of one thread");
  }
}

}  // namespace

Line fit_line(const std::vector<int>& images, const std::vector<double>& seconds) {
  return cputrain::fit_line(std::vector<double>(images.begin(), images.end()), seconds);
}

double interpolate(const std::vector<int>& at, const std::vector<double>& values, double x) {
  assert(!at.empty() && at.size() == values.size());
  if (at.size() == 1) return values[0] * x / at[0];
  if (x < at.front() || x > at.back()) {
    const std::size_t nearest = x < at.front() ? 0 : at.size() - 1;
    return std::max(0.0, values[nearest] + fit_line(at, values).each * (x - at[nearest]));
  }
  std::size_t i = 0;
  while (x > at[i + 1]) ++i;
  return values[i] + (values[i + 1] - values[i]) * (x - at[i]) / (at[i + 1] - at[i]);
}

double CostTable::drift() const {
  return std::ranges::max(by_active, {}, &CostsWhenActive::drift).drift;
}

std::string CostTable::origin() const {
  if (date.empty()) return cpu + ", date and commit not recorded" + stale;
  return fmt::format("{}, measured on {}{}{}", cpu, date, commit.empty() ? "" : " by " + commit,
                     stale);
}

CostsWhenActive CostTable::when(int active) const {
  const auto end = std::ranges::find_if(by_active, [](const auto& c) { return c.threads > 1; });
  const auto next =
      std::ranges::lower_bound(by_active.begin(), end, active, {}, &CostsWhenActive::active);
  if (next == end) return *std::prev(end);
  if (next == by_active.begin() || next->active == active) return *next;
  return between(*std::prev(next), *next, active);
}

CostsWhenActive CostTable::with_threads(CostsWhenActive costs, int threads) const {
  if (threads == 1) return costs;
  const CostsWhenActive& most = by_active.back();
  const CostsWhenActive single = when(most.threads);
  const auto share = [&](double& seconds, double measured, double alone) {
    const double slower = most.threads > 1 && alone > 0 ? measured * most.threads / alone : 1;
    const double serial =
        most.threads > 1 ? std::clamp((slower - 1) / (most.threads - 1), 0.0, 1.0) : 0;
    seconds *= serial + (1 - serial) / threads;
  };
  for (std::size_t i = 0; i < costs.layers.size(); ++i) {
    LayerCost& layer = costs.layers[i];
    for (std::size_t size = 0; size < sizes.size(); ++size) {
      share(layer.forward[size], most.layers[i].forward[size], single.layers[i].forward[size]);
      share(layer.backward[size], most.layers[i].backward[size], single.layers[i].backward[size]);
    }
  }
  share(costs.update_seconds_per_number, most.update_seconds_per_number,
        single.update_seconds_per_number);
  costs.sum_gbs *= threads;
  costs.fma_gflops *= threads;
  costs.threads = threads;
  return costs;
}

void fields_of_costs(JsonMembers& f, CostTable& table) {
  f.format("cputrain costs 2");
  f.need("cpu", table.cpu);
  f.need("host", table.host);
  f.need("build", table.build);
  f.may("date", table.date);
  f.may("commit", table.commit);
  f.need("model", table.model);
  f.need("image_size", table.image_size, 1, 16384);
  f.need("classes", table.classes, 1, 65536);
  f.need("network", table.network);
  f.may("kernels", table.kernels);
  f.need("cores", table.cores, 1, 1'000'000);
  f.need("hardware_threads", table.hardware_threads, table.cores, 1'000'000);
  f.need("memory_bytes", table.memory_bytes, 0, 1e18);
  f.need("sizes", table.sizes, 1, kMostSizes, 1, 65536);
  const std::size_t sizes = table.sizes.size();
  f.need("workspace_bytes", table.workspace_bytes, sizes, sizes, 0, 1e18);
  f.objects("by_active", table.by_active, 1, kMostActive, [&](JsonMembers& a, CostsWhenActive& c) {
    describe_active(a, c, sizes);
    if (a.file()) check_after_first(table.by_active, *a.file());
  });
  if (f.file()) check_table(table, *f.file());
}

nlohmann::ordered_json to_json(const CostTable& table) { return json_of(table, fields_of_costs); }

CostTable costs_from_json(const nlohmann::json& json, const std::string& where) {
  return value_of<CostTable>({json, where, kFileRemedy}, fields_of_costs);
}

nlohmann::json read_file(const std::filesystem::path& file) {
  return system::read_json_file(file, 64 << 20, kFileRemedy);
}

CostTable read_costs(const std::filesystem::path& file) {
  return costs_from_json(read_file(file), file.string());
}

}  // namespace cputrain::simulation
