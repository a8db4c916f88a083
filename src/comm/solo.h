#pragma once

#include <memory>

#include "comm/communicator.h"

namespace cputrain::comm {

/// One rank: this process alone. Nothing is sent, all contracts hold; abort ends the process.
std::unique_ptr<Communicator> make_solo();

}  // namespace cputrain::comm
