#include "report/sweep_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cells/axes.h"
#include "core/text.h"
#include "report/grid_tables.h"

namespace cputrain::report {
namespace {

/// Where a cell is in both tables. A listed flag counts where one of the tables has several values
/// of it; what holds for all of a table is what the comparison may be about.
cells::Place compared_place(const std::vector<cells::ListedFlag>& varied,
                            const cells::CellTable& table, cells::Cell cell) {
  cells::FlagTexts axes;
  for (const cells::ListedFlag& flag : varied) {
    axes[std::string(flag.name)] = cells::value_of(flag, table, cell);
  }
  cell.axes = std::move(axes);
  return cells::place_of(cell);
}

std::vector<cells::ListedFlag> varied_in_either(const cells::CellTable& before,
                                                const cells::CellTable& after) {
  std::vector<cells::ListedFlag> varied = cells::varied_flags(before);
  for (const cells::ListedFlag& flag : cells::varied_flags(after)) {
    if (std::ranges::find(varied, flag.name, &cells::ListedFlag::name) == varied.end()) {
      varied.push_back(flag);
    }
  }
  return varied;
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
  constexpr const char* kWords[] = {"faster", "slower", "no difference shown", "n/a"};
  return kWords[static_cast<std::size_t>(verdict)];
}

std::vector<CellDifference> compare_sweeps(const cells::CellTable& before,
                                           const cells::CellTable& after) {
  std::vector<CellDifference> result;
  const std::string why_not = other_work(before, after);
  const std::vector<cells::ListedFlag> varied = varied_in_either(before, after);
  std::map<cells::Place, const cells::Cell*> others;
  for (const cells::Cell& cell : after.cells) {
    others.emplace(compared_place(varied, after, cell), &cell);
  }
  for (const cells::Cell& cell : before.cells) {
    const auto other = others.find(compared_place(varied, before, cell));
    if (other != others.end()) result.push_back(compared(cell, *other->second, why_not));
  }
  return result;
}

}  // namespace cputrain::report
