#include "scaling/sweep/listed_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "scaling/sweep/grid_limits.h"
#include "training/request/training_rows.h"

namespace cputrain::sweep {

void set_value(training::TrainingFlags& flags, std::string_view flag, const std::string& value) {
  if (value == cells::kOwnDefault) return;
  training::training_row(flag).set(flags, value);
}

namespace {

training::TrainingFlags flags_with(training::TrainingFlags flags, const cells::FlagTexts& axes) {
  const training::TrainingFlags usual;
  for (const cells::ListedFlag& flag : cells::kListedFlags) {
    training::training_row(flag.name).copy(flags, usual);
  }
  for (const auto& [flag, value] : axes) set_value(flags, flag, value);
  return flags;
}

}  // namespace

training::TrainingSpec choose_any(const training::TrainingFlags& flags,
                                  const cells::SweepGrid& grid) {
  const std::vector<cells::FlagTexts> all = cells::combinations_of(grid);
  const auto possible = std::ranges::find_if(
      all, [&](const cells::FlagTexts& axes) { return why_never(flags, axes).empty(); });
  return training::choose_training(
      flags_with(flags, possible == all.end() ? all.front() : *possible));
}

std::string why_never(const training::TrainingFlags& flags, const cells::FlagTexts& axes) {
  try {
    static_cast<void>(training::choose_training(flags_with(flags, axes)));
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    return error.what();
  }
  return "";
}

}  // namespace cputrain::sweep
