#include "sweep/listed_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "core/error.h"
#include "sweep/grid_limits.h"

namespace cputrain::sweep {

void set_value(job::TrainingFlags& flags, std::string_view flag, const std::string& value) {
  if (value == cells::kOwnDefault) return;
  if (flag == "precision") {
    flags.precision = parse_precision(value);
  } else if (flag == "allreduce") {
    flags.allreduce = comm::parse_allreduce(value);
  } else if (flag == "compress") {
    flags.compress = exchange::parse_compression(value);
  } else if (flag == "prefetch") {
    flags.prefetch = std::stoi(value);
  } else {
    assert(flag == "lr");
    flags.lr = std::stod(value);
  }
}

namespace {

job::TrainingFlags flags_with(job::TrainingFlags flags, const cells::FlagTexts& axes) {
  const job::TrainingFlags usual;
  flags.precision = usual.precision;
  flags.allreduce = usual.allreduce;
  flags.compress = usual.compress;
  flags.lr = usual.lr;
  flags.prefetch = usual.prefetch;
  for (const auto& [flag, value] : axes) set_value(flags, flag, value);
  return flags;
}

}  // namespace

job::TrainingSpec choose_any(const job::TrainingFlags& flags, const cells::SweepGrid& grid) {
  const std::vector<cells::FlagTexts> all = cells::combinations_of(grid);
  const auto possible = std::ranges::find_if(
      all, [&](const cells::FlagTexts& axes) { return why_never(flags, axes).empty(); });
  return job::choose_training(flags_with(flags, possible == all.end() ? all.front() : *possible));
}

std::string why_never(const job::TrainingFlags& flags, const cells::FlagTexts& axes) {
  try {
    static_cast<void>(job::choose_training(flags_with(flags, axes)));
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    return error.what();
  }
  return "";
}

/// One that all backends have, where they have not the usual one; empty where they have it, or
/// where every cell is asked for another.
std::string common_precision(const cells::SweepGrid& grid, const Precisions& precisions) {
  const auto asked = grid.listed.find("precision");
  if (asked != grid.listed.end() &&
      std::ranges::find(asked->second, cells::kOwnDefault) == asked->second.end()) {
    return "";
  }
  std::vector<std::string> common;
  bool first = true;
  for (const std::string& backend : grid.backends) {
    const auto here = precisions.find(backend);
    if (here == precisions.end()) continue;  // a column of n/a
    if (std::exchange(first, false)) common = here->second;
    std::erase_if(common, [&](const std::string& precision) {
      return std::ranges::find(here->second, precision) == here->second.end();
    });
  }
  const std::string_view usual = word_of(job::TrainingFlags{}.precision);
  if (first || std::ranges::find(common, usual) != common.end()) return "";
  if (!common.empty()) return common.front();
  fail(ExitCode::usage,
       fmt::format("--backend {}: there is no precision that all of them have; name one or more "
                   "with --precision, and what a backend cannot do is n/a",
                   list_text(grid.backends)));
}

}  // namespace cputrain::sweep
