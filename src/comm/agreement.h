#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"

namespace cputrain::comm {

/// Throws Error(disagree) where the ranks' texts differ; `what` names what they are of. Rank 0
/// prints a table of them before. Collective.
void check_agreement(Communicator&, const std::string& what, const std::string& mine);

/// What one rank could not have, no rank has: where `make` throws an Error on some ranks, `undo`
/// lets go of what it made on all of them, which then throw the same Error(internal). Collective.
void attempt_together(Communicator&, const std::function<void()>& make,
                      const std::function<void()>& undo);

}  // namespace cputrain::comm
