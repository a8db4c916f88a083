#pragma once

#include "data/pipeline.h"

namespace cputrain::datasets {

/// Decodes every sample that the source lists and reports what is wrong with the data.
data::CheckReport check_data(const data::DataSource&, int threads, const data::OnProgress&);

}  // namespace cputrain::datasets
