#pragma once

#include <string>

#include "comm/communicator.h"

namespace cputrain {

/// Throws Error(disagree) where the ranks' texts differ; `what` names what they are of. Rank 0
/// tells a table of them before. Collective.
void check_agreement(Communicator&, const std::string& what, const std::string& mine);

}  // namespace cputrain
