#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/array.h"
#include "data/pipeline.h"
#include "datasets/loader/cache_view.h"

namespace cputrain::datasets {

/// Images of the reader that are decoded as they are asked for, and whose threads, with `threads`
/// above 0, decode what its view keeps before that: the share `mine` of this rank first, then what
/// others have left. The reader's data must outlive it, and the view's memory.
std::shared_ptr<data::FillingCache> make_decoding_cache(const CacheReader&, Range mine,
                                                        int threads);

}  // namespace cputrain::datasets
