#pragma once

#include <string>
#include <vector>

#include "model/weights/keras_file.h"
#include "model/weights/network/keras_differences.h"

namespace cputrain::model {

/// What is done with a file whose network computes something else than ours, where its arrays fit.
enum class Otherwise { refuse, warn };

/// What people should know where the file's network computes something else than the one here, as
/// far as its configuration says. Error(data) for Otherwise::refuse, unless layers are missing,
/// too: that is told elsewhere, and is reason enough.
std::vector<std::string> check_network(const KerasFile&, const Graph&, const KerasPairs&,
                                       Otherwise);

}  // namespace cputrain::model
