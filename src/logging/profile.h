#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "compute/layer_time.h"
#include "logging/reporters.h"

namespace cputrain::logging {

/// Where the time of training steps went, by layer and direction: at the end of a training a table
/// on the stream (none where it is null) and the same figures as JSON. `layers` answers what all
/// passes have taken until then; passes between epochs, which evaluate, are left out. Seconds are
/// those of the rank that asks.
std::unique_ptr<RunReporter> profile_reporter(
    std::function<std::vector<compute::LayerTime>()> layers, std::FILE*,
    const std::filesystem::path&);

}  // namespace cputrain::logging
