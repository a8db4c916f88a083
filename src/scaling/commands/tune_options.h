#pragma once

#include <optional>

#include "core/names.h"
#include "scaling/commands/bench_options.h"

namespace cputrain::commands {

/// What is looked for.
enum class Find { both, speed, rate };
constexpr auto names(Find) {
  return std::to_array<Name<Find>>(
      {{Find::both, "both"}, {Find::speed, "speed"}, {Find::rate, "rate"}});
}

struct TuneOptions : BenchOptions {
  std::optional<Find> asked;  ///< --find
  std::optional<int> most_batch, lr_steps;
  std::optional<double> min_lr, max_lr;

  Find find() const { return asked.value_or(Find::both); }
  bool finds_speed() const { return find() != Find::rate; }
  bool finds_rate() const {
    return find() == Find::rate || (find() == Find::both && !data.empty());
  }
  bool has_batch() const { return batch || batch_per_rank; }
};

}  // namespace cputrain::commands
