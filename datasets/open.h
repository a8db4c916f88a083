#pragma once

#include "data/pipeline.h"

namespace cputrain {

/// What --data names: lists it, splits it, applies the limits. Decodes nothing. Error(data) when
/// there is nothing to train on, Error(usage) for a value of --data that means nothing.
DataSource open_data(const DataRequest&);

}  // namespace cputrain
