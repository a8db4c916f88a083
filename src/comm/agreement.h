#pragma once

#include <string>

#include "comm/communicator.h"

namespace cputrain {

/// Throws Error(disagree) with a table where the ranks' texts differ; `what` names what they are
/// of. Collective.
void check_agreement(Communicator&, const std::string& what, const std::string& mine);

}  // namespace cputrain
