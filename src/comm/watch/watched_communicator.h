#pragma once

#include <memory>

#include "comm/communicator.h"

namespace cputrain::watch {

/// The same ranks, whose calls note in their pulse when they wait for each other. What was made
/// from it must be destroyed before it.
std::unique_ptr<comm::Communicator> watched(std::unique_ptr<comm::Communicator>);

}  // namespace cputrain::watch
