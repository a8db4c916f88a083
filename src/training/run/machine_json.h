#pragma once

#include <nlohmann/json_fwd.hpp>

#include "system/placement/placement.h"

namespace cputrain::training {

/// The facts of a machine, for `info` and environment.json.
nlohmann::ordered_json machine_json(const placement::Machine&);

/// One object a rank: host, cores, NUMA nodes, hardware threads, threads of each kind.
nlohmann::ordered_json placement_json(const placement::JobPlacement&);

}  // namespace cputrain::training
