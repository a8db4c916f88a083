#include "sweep/listed_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "job/spec/training_rows.h"
#include "sweep/grid_limits.h"

namespace cputrain::sweep {

void set_value(job::TrainingFlags& flags, std::string_view flag, const std::string& value) {
  if (value == cells::kOwnDefault) return;
  job::training_row(flag).set(flags, value);
}

namespace {

job::TrainingFlags flags_with(job::TrainingFlags flags, const cells::FlagTexts& axes) {
  const job::TrainingFlags usual;
  for (const cells::ListedFlag& flag : cells::kListedFlags) {
    job::training_row(flag.name).copy(flags, usual);
  }
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

}  // namespace cputrain::sweep
