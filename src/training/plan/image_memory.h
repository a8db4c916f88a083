#pragma once

#include <optional>
#include <string>

#include "data/pipeline.h"
#include "training/request/training_flags.h"

/// Memory that decoded images take, before they take it.
namespace cputrain::training {

using data::ImageForm;

/// Error(usage) where the images of a source need more than a node has, with the largest that would
/// fit, and pack_advice().
void check_images_fit(const TrainingFlags&, const ImageForm&, const data::DataSource&,
                      const data::CacheSize&, std::optional<std::size_t> available);

/// "; or pack the images ...: cputrain data pack photos photos.ctpack --image-size 96", a file with
/// the same images in the same parts. Empty for what is no training.
std::string pack_advice(const TrainingFlags&, const ImageForm&);

}  // namespace cputrain::training
