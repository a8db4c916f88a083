#pragma once

#include <string>

#include "loop/timeline.h"

namespace cputrain::logging {

/// One rank's part of a timeline as text that another rank's timeline_json() reads; `offset` is
/// what its clock shows more than rank 0's, in seconds.
std::string timeline_text(const loop::Timeline&, double offset);

/// Chrome's trace format (chrome://tracing, Perfetto): a process a rank, complete events in
/// microseconds of rank 0's clock from the first span on, the clocks' offsets in the metadata.
/// `texts` and `hosts` are by rank. Source: "Trace Event Format", Google, 2016.
std::string timeline_json(const std::vector<std::string>& texts,
                          const std::vector<std::string>& hosts);

}  // namespace cputrain::logging
