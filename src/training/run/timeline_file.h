#pragma once

#include <string>
#include <vector>

#include "loop/timeline.h"
#include "training/training.h"

namespace cputrain::training {

/// Error(usage) where the training ends before the first step that --timeline is to show.
void check_timeline_steps(const Training&);

/// The steps that --timeline shows; none without it. Rank 0 begins the file, so that a wrong path
/// shows at once; Error(usage) where it is one of a run's own, or there already without
/// --overwrite.
loop::Timeline make_timeline(const Session&, const TrainingSpec&);

/// Writes the timeline of all ranks where there is one. Collective. Error(output).
void write_timeline(const Session&, const TrainingSpec&, const loop::Timeline&);

/// Chrome's trace format (chrome://tracing, Perfetto): a process a rank, complete events in
/// microseconds of rank 0's clock from the first span on, the clocks' offsets in the metadata.
/// `texts` and `hosts` are by rank. Source: "Trace Event Format", Google, 2016.
std::string timeline_json(const std::vector<std::string>& texts,
                          const std::vector<std::string>& hosts);

}  // namespace cputrain::training
