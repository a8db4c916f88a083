#include "scaling/cells/explanation.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/cells/axes.h"
#include "system/lost_time.h"
#include "training/request/flag_grammars.h"

namespace cputrain::cells {
namespace {

double images_a_rank(const Cell& c) { return c.images_a_step() / c.ranks; }

double seconds_a_step(const Cell& c) { return c.images_a_step() / c.images_per_second.value_or(0); }

/// With its part of the epoch, from 0 to 1.
std::pair<double, CellLimits> largest_wait(const Cell& c) {
  const Budget& b = *c.budget;
  const double s = *c.seconds_per_epoch;
  const auto percent = [s](double seconds) { return 100 * seconds / s; };
  const std::vector<std::pair<double, CellLimits>> waits{
      {b.input_wait / s,
       {"input",
        fmt::format("{:.0f} % of the epoch is waiting for images (decoding or changing them is "
                    "slower than training)",
                    percent(b.input_wait))}},
      {b.allreduce_exposed / s,
       {"communication",
        fmt::format("{:.0f} % of the epoch is communication that backward does not hide, with "
                    "{:.4g} images per rank and step to compute beside it",
                    percent(b.allreduce_exposed), images_a_rank(c))}},
      {b.straggler_wait / s,
       {"imbalance",
        fmt::format("{:.0f} % of the epoch ranks wait for the last one of them, with {:.4g} images "
                    "a rank and step",
                    percent(b.straggler_wait), images_a_rank(c))}}};
  return *std::ranges::max_element(waits, {}, &std::pair<double, CellLimits>::first);
}

/// Seconds of a step that memory needs at the least; 0 where its bandwidth is not known.
double memory_seconds(const Cell& c, double parameters) {
  return c.triad_gbs.value_or(0) > 0 ? kLeastParameterBytes * parameters / (*c.triad_gbs * 1e9) : 0;
}

std::string compute_text(const Cell& c) {
  const Budget& b = *c.budget;
  std::string text = fmt::format("{:.0f} % of the epoch is forward and backward",
                                 100 * (b.forward + b.backward) / *c.seconds_per_epoch);
  if (!c.gflops) return text;
  text += fmt::format(", {:.4g} GFLOP/s counting direct convolution", *c.gflops);
  if (c.fma_gflops.value_or(0) <= 0) return text;
  return text + fmt::format(": {:.2f} of the {:.4g} that {}", *c.gflops / *c.fma_gflops,
                            *c.fma_gflops,
                            training::is_device(c.backend) ? "mma.sync reached beside it"
                                                           : "these CPUs can multiply and add");
}

/// Time that no rank had: what ranks then do with the rest is a limit of its own.
std::string stolen_text(const Cell& c) {
  std::string text;
  if (c.stolen.value_or(0) >= system::kStolenWorthSaying) {
    text =
        fmt::format("; {:.0f} % of a rank's CPU time went to others on its host", 100 * *c.stolen);
  }
  if (c.cpu_wait.value_or(0) >= system::kWaitWorthSaying) {
    text += fmt::format("; threads of a rank waited {:.0f} % of their time for a CPU",
                        100 * *c.cpu_wait);
  }
  return text;
}

/// What limits the time that ranks had.
CellLimits own_limits(const Cell& c, double parameters) {
  const auto [share, wait] = largest_wait(c);
  const double memory = memory_seconds(c, parameters), step = seconds_a_step(c);
  const double memory_share = c.images_per_second ? memory / step : 0;
  const bool waits = share >= kWaitLimits, memory_bound = memory_share >= kMemoryLimits;
  if (waits && (!memory_bound || share >= memory_share)) return wait;
  if (memory_bound) {
    return {"memory bandwidth",
            fmt::format("weights and gradients alone need {:.2g} of the {:.2g} s of a step to come "
                        "from memory and go back at {:.4g} GB/s",
                        memory, step, *c.triad_gbs)};
  }
  return {"compute", compute_text(c)};
}

// What a table says as a whole.

/// "1.38 times as quick", and between which figures that lies by the repeats of both cells.
std::string quicker_text(const Cell& from, const Cell& to) {
  const std::string text =
      fmt::format("{:.2f} times as quick", *from.seconds_per_epoch / *to.seconds_per_epoch);
  if (!from.spread || !to.spread) return text;
  const double least = from.spread->low / to.spread->high,
               most = from.spread->high / to.spread->low;
  constexpr double kShown = 0.01;
  return most - least < kShown ? text : fmt::format("{} ({:.2f} to {:.2f})", text, least, most);
}

/// Two neighbouring numbers of ranks in a row of the table.
struct Growth {
  const Cell* from;
  const Cell* to;
  double ideal;      ///< times as quick
  double quicker;    ///< by the geometric means of the repeats
  Interval between;  ///< 95 %, of `quicker`

  /// Half of what the ranks should bring.
  double enough() const { return 1 + 0.5 * (ideal - 1); }
  bool pays() const { return between.low > 1 && quicker >= enough(); }
  /// What does neither is left open by the repeats.
  bool pays_too_little() const { return between.high < enough(); }
};

/// Cells that differ in their ranks alone, but for the batch.
using Kind = std::tuple<std::string, int, std::string>;  // backend, threads of a rank, axes_text()

/// As many as there are ranks more; on a machine that grows with the cell, cores more.
double ideal_of(const Cell& from, const Cell& to, int cpus_per_core) {
  if (cpus_per_core == 0) return static_cast<double>(to.ranks) / from.ranks;
  return static_cast<double>(cores_of(to.cpus, cpus_per_core)) / cores_of(from.cpus, cpus_per_core);
}

/// Every step from fewer to more ranks at the same batch, but for those to hardware threads of the
/// same cores, which bring no speed, and those with too few repeats for an interval.
std::map<Kind, std::vector<Growth>> growths(const CellTable& table) {
  const std::vector<ListedFlag> varied = varied_flags(table);
  std::map<std::pair<Kind, std::size_t>, std::vector<const Cell*>> rows;
  for (const Cell& c : table.cells) {
    if (c.seconds_per_epoch && !c.batch_per_rank) {
      rows[{{c.backend, c.threads, axes_text(varied, table, c)}, c.batch}].push_back(&c);
    }
  }
  std::map<Kind, std::vector<Growth>> result;
  for (auto& [key, row] : rows) {
    std::ranges::sort(row, {}, &Cell::ranks);
    for (std::size_t i = 1; i < row.size(); ++i) {
      const double ideal = ideal_of(*row[i - 1], *row[i], table.machine.cpus_per_core);
      if (ideal <= 1 || row[i - 1]->repeats.size() < 2 || row[i]->repeats.size() < 2) continue;
      const TimeRatio gain = compare_times(row[i]->repeats, row[i - 1]->repeats);
      result[key.first].push_back({row[i - 1], row[i], ideal, gain.of_means, *gain.interval});
    }
  }
  return result;
}

/// What a rank of a backend computes on, for a sentence.
std::string unit_of(const std::string& backend) {
  return training::is_device(backend) ? "GPU" : "rank";
}

std::string kind_text(const Kind& kind) {
  const auto& [backend, threads, axes] = kind;
  const std::string whose = axes.empty() ? backend : backend + ", " + axes;
  if (unit_of(backend) != "rank") return whose;
  return fmt::format("{}, {} per rank", whose, counted(threads, "thread"));
}

/// Nothing where both ends read alike.
std::string between_text(const Interval& i) {
  constexpr double kShown = 0.01;
  return i.high - i.low < kShown ? ""
                                 : fmt::format(" (95 % interval {:.2f} to {:.2f})", i.low, i.high);
}

std::string growth_text(const Growth& g) {
  return fmt::format("batch {} from {} to {} {}s: {:.2f} times as quick{}, {:.3g} would be ideal{}",
                     g.to->batch, g.from->ranks, g.to->ranks, unit_of(g.to->backend), g.quicker,
                     between_text(g.between), g.ideal,
                     is_suspect(g.quicker / g.ideal) ? ", so one of the two is suspect" : "");
}

/// Nothing where the repeats leave the answer open.
std::optional<std::string> where_ranks_stop_paying(const Kind& kind,
                                                   const std::vector<Growth>& all) {
  const std::string unit = unit_of(std::get<0>(kind));
  const auto images = [](const Growth& g) { return images_a_rank(*g.to); };
  std::vector<Growth> poor;
  std::ranges::copy_if(all, std::back_inserter(poor), &Growth::pays_too_little);
  if (poor.empty()) {
    if (!std::ranges::all_of(all, &Growth::pays)) return std::nullopt;
    const Growth least = *std::ranges::min_element(all, {}, images);
    const bool one_row =
        std::ranges::all_of(all, [&](const Growth& g) { return g.to->batch == least.to->batch; });
    return fmt::format("{}: more {}s paid{} down to {:.3g} images per {} and step ({})",
                       kind_text(kind), unit, one_row ? "" : " in every row,", images(least), unit,
                       growth_text(least));
  }
  const Growth most = *std::ranges::max_element(poor, {}, images);
  std::string text = fmt::format(
      "{}: at {:.3g} images per {} and step, added {}s brought less than half of the ideal gain "
      "({})",
      kind_text(kind), images(most), unit, unit, growth_text(most));
  const bool mixed = std::ranges::any_of(all, [&](const Growth& g) {
    return g.to->batch != most.to->batch && g.pays() && images(g) <= images(most);
  });
  return mixed ? text + fmt::format("; in other rows added {}s paid at fewer images", unit) : text;
}

/// Sentences about CPUs that were divided in several ways, a batch each.
std::vector<std::string> best_splits(const CellTable& table) {
  const std::vector<ListedFlag> varied = varied_flags(table);
  std::map<std::tuple<std::string, std::string, int, std::size_t>, std::vector<const Cell*>> places;
  for (const Cell& c : table.cells) {
    if (c.seconds_per_epoch && !c.batch_per_rank) {
      places[{c.backend, axes_text(varied, table, c), c.cpus, c.batch}].push_back(&c);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [key, splits] : places) {
    if (splits.size() < 2) continue;
    const auto [best, worst] = std::ranges::minmax_element(
        splits, {}, [](const Cell* c) { return *c->seconds_per_epoch; });
    const std::string& axes = std::get<1>(key);
    lines.push_back(fmt::format("{}{}: best split of {} CPUs at batch {}: {} x {}, {} as {} x {}",
                                (*best)->backend, axes.empty() ? "" : ", " + axes, (*best)->cpus,
                                (*best)->batch, counted((*best)->ranks, "rank"),
                                counted((*best)->threads, "thread"), quicker_text(**worst, **best),
                                (*worst)->ranks, (*worst)->threads));
  }
  return lines;
}

}  // namespace

CellLimits explain(const Cell& c, double parameters) {
  if (!c.seconds_per_epoch || !c.budget) return {};
  CellLimits limits = own_limits(c, parameters);
  limits.why += stolen_text(c);
  return limits;
}

std::vector<std::string> remarks(const CellTable& table) {
  std::vector<std::string> lines;
  for (const auto& [kind, all] : growths(table)) {
    if (auto line = where_ranks_stop_paying(kind, all)) lines.push_back(std::move(*line));
  }
  for (std::string& line : best_splits(table)) lines.push_back(std::move(line));
  return lines;
}

std::vector<LostTime> lost_time(const Budget& budget, double seconds, std::optional<double> stolen,
                                std::optional<double> cpu_wait) {
  std::vector<LostTime> lost;
  // Where it is `least` or more; `sentence` has a place for the percentage.
  const auto look = [&](const char* what, double share, double least, const char* sentence) {
    if (share >= least)
      lost.push_back({what, share, fmt::format(fmt::runtime(sentence), 100 * share)});
  };
  if (seconds > 0) {
    look("images", budget.input_wait / seconds, kWaitLimits,
         "Starved of images: {:.0f} % of the time was waiting for input; try a packed file (data "
         "pack), more --io-threads, or fewer changes by --augment.");
    look("communication", budget.allreduce_exposed / seconds, kWaitLimits,
         "Starved by communication: {:.0f} % of the time was sums of gradients that backward did "
         "not hide; try a larger --batch, fewer ranks with more --threads each, or --compress "
         "bf16.");
    look("balance", budget.straggler_wait / seconds, kWaitLimits,
         "Starved by the slowest rank: {:.0f} % of the time ranks waited for the last of them; try "
         "cores of one kind with nothing else on them, or fewer ranks with more --threads each.");
  }
  look(
      "host", stolen.value_or(0), system::kStolenWorthSaying,
      "Starved of CPU time by the host: {:.0f} % of a rank's CPU time went to other guests of this "
      "virtual machine's host; try again later, or a machine whose CPUs are not shared.");
  look(
      "CPUs", cpu_wait.value_or(0), system::kWaitWorthSaying,
      "Starved of CPUs: threads of a rank waited {:.0f} % of their time for one; end other work on "
      "the machine, or try fewer ranks or --threads.");
  std::ranges::stable_sort(lost, std::greater(), &LostTime::share);
  return lost;
}

std::vector<LostTime> lost_time_of(const Cell& cell) {
  if (!cell.budget || !cell.seconds_per_epoch) return {};
  return lost_time(*cell.budget, *cell.seconds_per_epoch, cell.stolen, cell.cpu_wait);
}

}  // namespace cputrain::cells
