#pragma once

#include <map>

#include "sweep/run_figures.h"

/// A cell's trainings on a machine whose host may spend its CPUs on others meanwhile
/// (core/stolen_time.h): more are made for those that were disturbed, and which of them count is
/// chosen by what was stolen, never by what came out.
namespace cputrain {

/// By repeat: 1, 2, ...
using Runs = std::map<int, RunFigures>;

/// The host took more than CalmRounds::kCalm of a rank's CPU time. False where that is not known.
bool is_disturbed(const RunFigures&);

/// Trainings that the cell should have: `wanted`, and one more for each that was disturbed, but no
/// more than `most`. Stolen time is counted in ticks of 10 ms, so where no training of the cell
/// lasted two seconds it tells nothing, and `wanted` are enough.
int runs_to_make(const Runs&, int wanted, int most);

/// The `wanted` that lost least, the earlier of two that lost the same, or all where there are not
/// so many. What is not known, or tells nothing, counts as nothing.
Runs calmest(const Runs&, int wanted);

}  // namespace cputrain
