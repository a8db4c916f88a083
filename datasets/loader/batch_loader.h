#pragma once

#include <memory>

#include "data/pipeline.h"

namespace cputrain::datasets {

/// Micro-batches made by a thread of their own, one ahead of the one in use, or where the request
/// has no prefetching when they are asked for. Without augmentation they point into the set and no
/// pixel is copied. If the set is stored elsewhere, each image is read and compared with its
/// checksum; if it is still being decoded, what is missing is decoded. Where there is a feeder, a
/// micro-batch begins to be sent as soon as it is made, and pixels that move are moved on the
/// device. Error(usage) for an augmentation that the images' shape does not allow.
std::unique_ptr<data::BatchSource> make_batch_loader(const data::ImageSet&, const data::BatchPlan&,
                                                     const data::BatchRequest&);

/// What such a loader of the training images keeps.
compute::FeedBytes memory_of_batches(const data::DataSource&, Shape image, const data::BatchPlan&,
                                     const data::BatchRequest&);

}  // namespace cputrain::datasets
