#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/array.h"
#include "data/pipeline.h"
#include "datasets/loader/cache_view.h"

namespace cputrain::datasets {

/// Begins to decode `images` of the source, ascending, from the share `mine` of this rank on, with
/// the threads of the request. The source must outlive it, and the view's memory.
std::shared_ptr<data::FillingCache> fill_meanwhile(const data::DataSource&,
                                                   const data::DecodeRequest&,
                                                   std::vector<std::uint32_t> images, Range mine,
                                                   const CacheView&);

}  // namespace cputrain::datasets
