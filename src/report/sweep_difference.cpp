#include "report/sweep_difference.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "core/text.h"
#include "report/grid_tables.h"

namespace cputrain::report {
namespace {

using ComparedPlace = std::tuple<int, int, std::size_t, std::optional<int>, std::string>;

ComparedPlace place_of(const cells::Cell& c) {
  return {c.ranks, c.threads, c.batch, c.batch_per_rank, c.backend};
}

/// Why an epoch of one is not the work of an epoch of the other; empty where it is, as far as both
/// say.
std::string other_work(const cells::CellTable& before, const cells::CellTable& after) {
  std::vector<std::string> parts;
  const auto compare = [&](const char* what, bool both, const auto& a, const auto& b) {
    if (both && a != b) parts.push_back(fmt::format("{} ({} and {})", what, a, b));
  };
  compare("model", !before.model.empty() && !after.model.empty(), printable(before.model),
          printable(after.model));
  compare("image size", before.image_size > 0 && after.image_size > 0, before.image_size,
          after.image_size);
  compare("images per epoch", before.images_per_epoch > 0 && after.images_per_epoch > 0,
          before.images_per_epoch, after.images_per_epoch);
  return parts.empty() ? "" : "an epoch is other work: they differ in " + join(parts, ", ");
}

CellDifference compared(const cells::Cell& before, const cells::Cell& after,
                        const std::string& other) {
  CellDifference result{before, after, std::nullopt, Verdict::absent, other};
  if (!other.empty()) return result;
  if (!before.seconds_per_epoch || !after.seconds_per_epoch) {
    result.why = reason_text(before.seconds_per_epoch ? after : before);
    return result;
  }
  const auto repeats = [](const cells::Cell& c) {
    return c.repeats.empty() ? std::vector<double>{*c.seconds_per_epoch} : c.repeats;
  };
  result.ratio = compare_times(repeats(before), repeats(after));
  if (!result.ratio->interval) {
    result.why = "too few repeats: an interval needs two of each";
    return result;
  }
  result.verdict = Verdict::no_difference_shown;
  if (result.ratio->interval->high < 1) {
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

std::vector<CellDifference> compare_sweeps(const cells::CellTable& before,
                                           const cells::CellTable& after) {
  std::vector<CellDifference> result;
  const std::string why_not = other_work(before, after);
  std::map<ComparedPlace, const cells::Cell*> others;
  for (const cells::Cell& cell : after.cells) others.emplace(place_of(cell), &cell);
  for (const cells::Cell& cell : before.cells) {
    const auto other = others.find(place_of(cell));
    if (other != others.end()) result.push_back(compared(cell, *other->second, why_not));
  }
  return result;
}

}  // namespace cputrain::report
