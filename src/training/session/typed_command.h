#pragma once

#include <functional>
#include <string>
#include <vector>

#include "training/session/session.h"

namespace cputrain::training {

/// The words that were typed to start this job: launcher, program, command, and of the flags those
/// that are `wanted`.
std::vector<std::string> typed_command(
    const Session&, const TrainingFlags&,
    const std::function<bool(const std::string& flag)>& wanted = {});

}  // namespace cputrain::training
