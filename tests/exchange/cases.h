#pragma once

#include "tests/comm/cases.h"

namespace cputrain::exchange {

/// Every way to exchange gradients (exchange_cases.cpp).
std::vector<comm::CommCase> exchange_cases();
/// Sums of leaves in a fixed order (ordered_cases.cpp).
std::vector<comm::CommCase> ordered_exchange_cases();
/// Parameters whose rows the ranks of a node share (sharded_cases.cpp).
std::vector<comm::CommCase> sharded_exchange_cases();
/// Sums that send fewer bytes (compression_cases.cpp).
std::vector<comm::CommCase> compression_cases();
/// What compression keeps back for later steps (kept_parts_cases.cpp).
std::vector<comm::CommCase> kept_parts_cases();
/// Matrices that travel as two thin ones (power_sgd_cases.cpp).
std::vector<comm::CommCase> power_sgd_cases();
/// Arenas that do not lie in the host's memory (memory_cases.cpp).
std::vector<comm::CommCase> memory_cases();
/// All of them, and those of tests/comm.
std::vector<comm::CommCase> all_cases();

}  // namespace cputrain::exchange
