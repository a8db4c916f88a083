#pragma once

#include <string>

#include "comm/communicator.h"
#include "data/batch_source.h"

namespace cputrain::loop {

/// Why an image of the micro-batches so far was not the data's on some rank, on all ranks alike;
/// empty where all were. Settles images that were being decoded and have all come. Collective, and
/// free where images cannot change.
std::string lost_input(data::BatchSource&, comm::Communicator&);

}  // namespace cputrain::loop
