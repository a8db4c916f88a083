#pragma once

#include "data/pipeline.h"

namespace cputrain {

/// What --data names: lists it, splits it, applies the limits. Decodes nothing. Error(data) when
/// there is nothing to train on, Error(usage) for a value of --data that means nothing.
DataSource open_data(const DataRequest&);

/// At most `limit` of the samples, chosen as --limit-val chooses those for validation.
std::vector<std::uint32_t> limited_samples(const Dataset&,
                                           const std::vector<std::uint32_t>& samples,
                                           std::size_t limit, const DataRequest&);

}  // namespace cputrain
