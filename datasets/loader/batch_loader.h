#pragma once

#include <memory>

#include "data/pipeline.h"

namespace cputrain::datasets {

/// Micro-batches made by a thread of their own, one ahead of the one in use. Without augmentation
/// they point into the set and no pixel is copied; of a set that is stored elsewhere each image is
/// read and compared with its checksum. Error(usage) for an augmentation that the
/// images' shape does not allow.
std::unique_ptr<data::BatchSource> make_batch_loader(const data::ImageSet&, const data::BatchPlan&,
                                                     const data::BatchRequest&);

/// Bytes of pixels that such a loader keeps, read or changed: none where it only points into the
/// set.
std::size_t bytes_in_flight(const data::DataSource&, Shape image, const data::BatchPlan&,
                            const data::BatchRequest&);

}  // namespace cputrain::datasets
