#pragma once

#include "data/pipeline.h"

namespace cputrain {

/// Decodes every sample that the source lists and reports what is wrong with the data.
CheckReport check_data(const DataSource&, int threads, const Progress&);

}  // namespace cputrain
