#include "scaling/simulation/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <tuple>

#include "comm/allreduce_choice.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/cells/explanation.h"

namespace cputrain::simulation {
namespace {

// Why cells are quicker than their CPUs explain.

/// Cells that speed-ups compare: as in the rows of a report.
using RowKey = std::tuple<std::string, bool, std::size_t, int>;

RowKey row_of(const cells::Cell& c) {
  if (!c.batch_per_rank) return {c.backend, false, c.batch, 0};
  return {c.backend, true, static_cast<std::size_t>(*c.batch_per_rank), c.threads};
}

bool is_quicker_base(const cells::Cell& a, const cells::Cell& b) {
  if (a.cpus != b.cpus) return a.cpus < b.cpus;
  return *a.seconds_per_epoch < *b.seconds_per_epoch;
}

double seconds_an_image(const CostTable& costs, int images_at_once) {
  double seconds = 0;
  for (const LayerCost& layer : costs.alone().layers) {
    seconds += interpolate(costs.sizes, layer.forward, images_at_once) +
               interpolate(costs.sizes, layer.backward, images_at_once);
  }
  return seconds / images_at_once;
}

/// That the measured core reached, as a PeakShare has it.
double share_of_peak(const CostTable& costs, double flops_per_image) {
  constexpr int kImages = 8;
  return flops_per_image / seconds_an_image(costs, kImages) / (1e9 * costs.alone().fma_gflops);
}

/// "forward takes 4 CPU seconds less per epoch": of what takes so much less that it decides.
std::string saved_text(const cells::Cell& c, const cells::Cell& base) {
  std::string text = "the disturbances that were drawn for it are smaller";
  double most = 0;
  if (!c.budget || !base.budget) return text;
  for (const BudgetPart& part : kBudgetParts) {
    const double saved = *base.budget.*part.seconds * base.cpus - *c.budget.*part.seconds * c.cpus;
    if (saved <= most) continue;
    most = saved;
    text = fmt::format("{} takes {:.3g} CPU seconds less per epoch", part.name, saved);
  }
  return text;
}

std::string reason_of(const cells::Cell& here, const cells::Cell& base,
                      const SimulationResult& own_result, const SimulationResult& base_result,
                      const CostTable& costs) {
  std::vector<std::string> reasons;
  if (!own_result.sharded.empty() && base_result.sharded.empty()) {
    reasons.push_back(fmt::format(
        "the ranks of a node compute {} together and read its weights once, not once per rank",
        printable(join(own_result.sharded, " and "))));
  }
  const int own = own_result.images_at_once, others = base_result.images_at_once;
  const double part = seconds_an_image(costs, own) / seconds_an_image(costs, others);
  if (own != others && part < 1) {
    reasons.push_back(fmt::format(
        "by its costs an image takes {:.1f} % less time in micro-batches of {} than of {}",
        100 * (1 - part), own, others));
  }
  if (reasons.empty()) reasons.push_back(saved_text(here, base));
  return join(reasons, "; ");
}

}  // namespace

std::string usual_allreduce(int nodes, int ranks, const Platform& platform, double gradient_bytes) {
  if (nodes == 1) return "shm";
  const double bytes = gradient_bytes * nodes / ranks;  // each rank of a node sums its slice
  const double bits = platform.network_gbps * platform.network_efficiency * 1e9;
  const Line message{platform.network_latency_us * 1e-6, 8 / bits * ranks / nodes};
  return "hierarchical+" + comm::quickest_algorithm(message, nodes, bytes);
}

std::string Forecast::obstacle(const cells::Cell& cell) const {
  if (cell.threads > platform_.hardware_threads()) {
    return fmt::format("a machine of {} has {} hardware threads, not {} for a rank", platform_.name,
                       platform_.hardware_threads(), cell.threads);
  }
  const int most = platform_.most_ranks(cell.threads);
  if (cell.ranks > most && cell.threads > 1) {
    return fmt::format("{} holds {} of {} threads ({} x {} hardware threads), not {}",
                       platform_.name, counted(most, "rank"), cell.threads, platform_.nodes,
                       platform_.hardware_threads(), cell.ranks);
  }
  if (cell.ranks > most) {
    return fmt::format("{} has {} ({} x {} hardware threads)", platform_.name,
                       counted(platform_.most_ranks(), "CPU"), platform_.nodes,
                       platform_.hardware_threads());
  }
  return "";
}

std::vector<double> Forecast::slower() const {
  if (!platform_.cpu || !platform_.cpu->share) return {1};
  const PeakShare& share = *platform_.cpu->share;
  const double own = share_of_peak(costs_, flops_per_image_);
  const bool of_model =
      share.model.empty() || (costs_.model == share.model && costs_.image_size == share.image_size);
  const bool same_kind = !share.kind.empty() && costs_.cpu.find(share.kind) != std::string::npos;
  const double likely = !of_model || same_kind ? 1 : own / share.likely;
  if (of_model && share.low == share.high) return {likely};
  // For another network it is only known how far kinds of cores are apart.
  const double most = of_model ? own / share.low : share.high / share.low;
  const double least = of_model ? own / share.high : 1;
  return {likely, std::min({least, likely, 1.0}), std::max(most, likely)};
}

std::string Forecast::share_text() const {
  if (!platform_.cpu || !platform_.cpu->share) return "";
  const double own = share_of_peak(costs_, flops_per_image_);
  const std::vector<double> times = slower();
  const std::string range =
      times.size() > 1 ? fmt::format(" ({:.2f} to {:.2f})", own / times[2], own / times[1]) : "";
  return fmt::format(
      "a core reaches {:.2f}{} of its peak of multiply-adds, that of the costs {:.2f}",
      own / times[0], range, own);
}

std::vector<SimulationJob> Forecast::jobs(const cells::Cell& cell,
                                          const std::vector<std::string>& flags) const {
  SimulationJob job;
  job.ranks = cell.ranks;
  job.threads = cell.threads;
  job.arguments = {"train", fmt::format("--threads={}", cell.threads),
                   fmt::format("--batch={}", cell.batch),
                   "--cache=memory"};  // a machine without room for images is what a cell tells
  job.arguments.insert(job.arguments.end(), flags.begin(), flags.end());
  job.platform = platform_.of_cell(cell.cpus);
  job.costs = costs_;
  job.classes = classes_;
  job.images_per_epoch = images_;
  const bool says = std::ranges::any_of(
      flags, [](const std::string& flag) { return flag.starts_with("--allreduce"); });
  if (!says) {
    job.arguments.push_back(
        "--allreduce=" + usual_allreduce(job.nodes(), cell.ranks, job.platform, gradient_bytes_));
  }
  std::vector<SimulationJob> jobs;
  for (const double times : slower()) {
    jobs.push_back(job);
    if (times != 1) jobs.back().platform.cpu->flops_per_cycle /= times;
  }
  if (jobs.size() > 1) jobs[1].platform.cpu->kept.clear();  // the quickest keeps all of it
  return jobs;
}

void Forecast::fill(cells::Cell& cell, std::span<const SimulationResult> results) const {
  for (const SimulationResult& one : results) {
    if (one.failure.empty()) continue;
    cell.reason = one.failure;
    return;
  }
  const SimulationResult& result = results.front();
  // The short last step of an epoch takes about its part of a step's time.
  const double images = static_cast<double>(images_);
  const double scale = images / static_cast<double>(result.images);
  for (const SimulatedSteps& repeat : result.repeats) {
    cell.repeats.push_back(repeat.seconds * scale);
  }
  const double seconds = median(cell.repeats);
  // The budget of the repeat nearest to the median, so that it adds up.
  const auto typical = std::ranges::min_element(result.repeats, {}, [&](const SimulatedSteps& r) {
    return std::abs(r.seconds * scale - seconds);
  });
  cell.status = cells::CellStatus::simulated;
  cell.seconds_per_epoch = seconds;
  cell.spread = {std::ranges::min(cell.repeats), std::ranges::max(cell.repeats)};
  for (const SimulationResult& other : results.subspan(1)) {
    for (const SimulatedSteps& repeat : other.repeats) {
      cell.spread->low = std::min(cell.spread->low, repeat.seconds * scale);
      cell.spread->high = std::max(cell.spread->high, repeat.seconds * scale);
    }
  }
  cell.steps = static_cast<std::int64_t>(result.steps);
  cell.images_per_second = images / seconds;
  cell.budget = typical->budget * (seconds / typical->seconds);
  cell.gflops = flops_per_image_ * images / seconds / 1e9;
  cell.limits = limits_of(cell, platform_.of_cell(cell.cpus),
                          typical->memory_stall * seconds / typical->seconds);
}

cells::CellLimits limits_of(const cells::Cell& cell, const Platform& platform,
                            double memory_stall) {
  const Budget& budget = *cell.budget;
  const double seconds = *cell.seconds_per_epoch;
  const auto percent = [&](double part) { return 100 * part / seconds; };
  const int nodes = nodes_used(platform, cell.ranks, cell.threads);
  const double images = static_cast<double>(cell.batch) / cell.ranks;
  // Sums over one node's shared memory move bytes of memory, not of a network.
  const double messages = nodes > 1 ? budget.allreduce_exposed : 0;
  const double memory = memory_stall + budget.optimizer + budget.allreduce_exposed - messages;
  cells::CellLimits limits;
  double most = 0;
  const auto weigh = [&](double part, double worth_naming, const char* what, std::string why) {
    if (part < worth_naming * seconds || (!limits.what.empty() && part <= most)) return;
    most = part;
    limits = {what, std::move(why)};
  };
  weigh(messages, cells::kWaitLimits, "communication",
        fmt::format("sums between {} nodes take {:.0f} % of the epoch at {:g} Gbit/s", nodes,
                    percent(messages), platform.network_gbps));
  weigh(budget.straggler_wait, cells::kWaitLimits, "imbalance",
        fmt::format("ranks wait {:.0f} % of the epoch for the one with most images or least luck, "
                    "with {:.4g} images per rank and step",
                    percent(budget.straggler_wait), images));
  weigh(memory, cells::kMemoryLimits, "memory bandwidth",
        fmt::format("sums, update and what layers wait for memory take {:.0f} % of the epoch at "
                    "{:g} GB/s per node",
                    percent(memory), platform.node_gbs));
  if (!limits.what.empty()) return limits;
  const double busy = budget.forward + budget.backward;
  return {"compute",
          fmt::format("forward and backward take {:.0f} % of the epoch (computing {:.0f} %, "
                      "waiting for memory {:.0f} %), with {:.4g} images per rank and step",
                      percent(busy), percent(busy - memory_stall), percent(memory_stall), images)};
}

void explain_above_linear(std::vector<cells::Cell>& cells,
                          const std::vector<SimulationResult>& results, const CostTable& costs) {
  assert(cells.size() == results.size());
  std::map<RowKey, std::size_t> bases;  // their places
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i].seconds_per_epoch) continue;
    std::size_t& base = bases.try_emplace(row_of(cells[i]), i).first->second;
    if (is_quicker_base(cells[i], cells[base])) base = i;
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells::Cell& c = cells[i];
    if (!c.seconds_per_epoch) continue;
    const std::size_t place = bases.at(row_of(c));
    const cells::Cell& base = cells[place];
    const double efficiency = *base.seconds_per_epoch * base.cpus / (*c.seconds_per_epoch * c.cpus);
    if (c.cpus == base.cpus || efficiency < cells::kAboveLinear) continue;
    c.limits.why += fmt::format("; {:.1f} % of the speed of {} for each as many, because {}",
                                100 * efficiency, counted(base.cpus, "CPU"),
                                reason_of(c, base, results[i], results[place], costs));
  }
}

}  // namespace cputrain::simulation
