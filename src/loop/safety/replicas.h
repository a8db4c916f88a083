#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "compute/memory.h"

namespace cputrain::loop {

/// Collective: Error(disagree) on all ranks where `learnt`, what a rank has learnt, is not the same
/// bits on all of them. The message names the step and the ranks that differ from the majority, or
/// all groups where there is none. `hosts`: by rank, as far as they are known.
void check_replicas(comm::Communicator&, compute::Memory&, const Array& learnt, std::uint64_t step,
                    const std::vector<std::string>& hosts);

/// Which ranks differ, by the hashes of all ranks: "rank 2 (host h) differs from the other 3";
/// empty where all are the same.
std::string odd_ranks(std::span<const std::uint64_t> hashes, const std::vector<std::string>& hosts);

}  // namespace cputrain::loop
