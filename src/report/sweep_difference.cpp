#include "report/sweep_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace cputrain {
namespace {

bool same_place(const Cell& a, const Cell& b) {
  const auto key = [](const Cell& c) {
    return std::tie(c.ranks, c.threads, c.batch, c.batch_per_rank, c.backend);
  };
  return key(a) == key(b);
}

CellDifference compared(const Cell& before, const Cell& after) {
  CellDifference result{before, after, std::nullopt, Verdict::absent, ""};
  if (!before.seconds_per_epoch || !after.seconds_per_epoch) {
    const Cell& absent = before.seconds_per_epoch ? after : before;
    result.why = (absent.reason.empty() ? "no reason was given" : absent.reason);
    return result;
  }
  const auto repeats = [](const Cell& c) {
    return c.repeats.empty() ? std::vector<double>{*c.seconds_per_epoch} : c.repeats;
  };
  result.ratio = compare_times(repeats(before), repeats(after));
  result.verdict = Verdict::no_difference_shown;
  if (!result.ratio->interval) {
    result.why = "an interval needs two repeats of each";
  } else if (result.ratio->interval->high < 1) {
    result.verdict = Verdict::faster;
  } else if (result.ratio->interval->low > 1) {
    result.verdict = Verdict::slower;
  }
  return result;
}

}  // namespace

std::string verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster:
      return "faster";
    case Verdict::slower:
      return "slower";
    case Verdict::no_difference_shown:
      return "no difference shown";
    case Verdict::absent:
      break;
  }
  return "n/a";
}

std::vector<CellDifference> compare_sweeps(const CellTable& before, const CellTable& after) {
  std::vector<CellDifference> result;
  for (const Cell& cell : before.cells) {
    const auto other =
        std::ranges::find_if(after.cells, [&](const Cell& c) { return same_place(cell, c); });
    if (other != after.cells.end()) result.push_back(compared(cell, *other));
  }
  return result;
}

}  // namespace cputrain
