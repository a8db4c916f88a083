#pragma once

#include "data/pipeline.h"

namespace cputrain::datasets {

/// What --data names: lists it, splits it, applies the limits. Decodes nothing. Error(data) when
/// there is nothing to train on, Error(usage) for a value of --data that means nothing.
data::DataSource open_data(const data::DataRequest&);

/// At most `limit` of the samples, chosen as --limit-val chooses those for validation.
std::vector<std::uint32_t> limited_samples(const data::Dataset&,
                                           const std::vector<std::uint32_t>& samples,
                                           std::size_t limit, const data::DataRequest&);

}  // namespace cputrain::datasets
