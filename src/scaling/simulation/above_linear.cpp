// Why simulated cells are quicker than their CPUs explain.

#include <fmt/format.h>

#include <cassert>
#include <map>
#include <tuple>

#include "core/text.h"
#include "scaling/cells/explanation.h"
#include "scaling/simulation/forecast.h"

namespace cputrain::simulation {
namespace {

/// A cell with how it worked.
struct Simulated {
  cells::Cell* cell = nullptr;
  const CellWork* work = nullptr;
};

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

std::string reason_of(const Simulated& here, const Simulated& base, const CostTable& costs) {
  std::vector<std::string> reasons;
  if (!here.work->sharded.empty() && base.work->sharded.empty()) {
    reasons.push_back(fmt::format(
        "the ranks of a node compute {} together and read its weights once, not once per rank",
        printable(join(here.work->sharded, " and "))));
  }
  const int own = here.work->images_at_once, others = base.work->images_at_once;
  const double part = seconds_an_image(costs, own) / seconds_an_image(costs, others);
  if (own != others && part < 1) {
    reasons.push_back(
        fmt::format("by its costs an image takes {:.1f} % less time in micro-batches of {} than of "
                    "{}",
                    100 * (1 - part), own, others));
  }
  if (reasons.empty()) reasons.push_back(saved_text(*here.cell, *base.cell));
  return join(reasons, "; ");
}

}  // namespace

void explain_above_linear(std::vector<cells::Cell>& cells, const std::vector<CellWork>& work,
                          const CostTable& costs) {
  assert(cells.size() == work.size());
  std::map<RowKey, Simulated> bases;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i].seconds_per_epoch) continue;
    Simulated& base = bases[row_of(cells[i])];
    if (!base.cell || is_quicker_base(cells[i], *base.cell)) base = {&cells[i], &work[i]};
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells::Cell& c = cells[i];
    if (!c.seconds_per_epoch) continue;
    const Simulated& base = bases.at(row_of(c));
    const double efficiency =
        *base.cell->seconds_per_epoch * base.cell->cpus / (*c.seconds_per_epoch * c.cpus);
    if (c.cpus == base.cell->cpus || efficiency < cells::kAboveLinear) continue;
    c.limits.why +=
        fmt::format("; {:.1f} % of the speed of {} for each as many, because {}", 100 * efficiency,
                    counted(base.cell->cpus, "CPU"), reason_of({&c, &work[i]}, base, costs));
  }
}

}  // namespace cputrain::simulation
