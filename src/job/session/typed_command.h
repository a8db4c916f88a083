#pragma once

#include <functional>
#include <string>
#include <vector>

#include "job/session/session.h"

namespace cputrain::job {

/// The words that were typed to start this job: launcher, program, command, and of the flags those
/// that are `wanted`.
std::vector<std::string> typed_command(
    const Session&, const TrainingFlags&,
    const std::function<bool(const std::string& flag)>& wanted = {});

}  // namespace cputrain::job
