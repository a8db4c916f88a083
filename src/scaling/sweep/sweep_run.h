#pragma once

#include <map>
#include <string>

#include "scaling/cells/run_figures.h"
#include "scaling/sweep/sweep_plan.h"

namespace cputrain::sweep {

/// A cell's trainings by repeat: 1, 2, ...
using Runs = std::map<int, cells::RunFigures>;

/// What is known of a cell from its folder: its trainings until now.
struct CellState {
  Runs runs;            ///< repeats that came to their end
  int failed = 0;       ///< the first repeat that did not
  std::string failure;  ///< why, in words
  std::string foreign;  ///< which runs another kind of machine made, in words; empty for none
  /// How many there are still to be made.
  std::size_t left(const SweepPlan& plan) const;
  /// The first repeat that is still to be made.
  int next() const;
};

/// Reads run folders; one that is not whole counts as not there.
CellState state_of(const SweepPlan&, const cells::Cell&);

/// Forgets why a cell failed, so that it is measured again.
void forget_failure(const SweepPlan&, const cells::Cell&);

/// Trains the next repeat of a cell, from its beginning, and adds what it says to `state`. False
/// where a signal asked for a stop: then its ranks have ended, and nothing of it counts.
bool run_next(const SweepPlan&, const cells::Cell&, system::SignalWatch&, CellState& state);

/// The cell with the figures of its trainings, or with the reason why there are none; else
/// `cannot`, why this machine cannot measure it, where that is known.
cells::Cell cell_with_figures(const SweepPlan&, const cells::Cell&, const CellState&,
                              const std::string& cannot, const std::string& command);

}  // namespace cputrain::sweep
