#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "data/pipeline.h"
#include "training/plan/compiled_training.h"
#include "training/plan/training_memory.h"

/// Where the decoded images of a training lie: in memory, or, where that has no room for them, in a
/// file on disk, or nowhere; the memory that they take there; and whether a device has a copy of
/// them.
namespace cputrain::training {

using data::ImageForm;

/// Error(usage) where the images of a source need more than a node has, with the largest that would
/// fit, and pack_advice().
void check_images_fit(const TrainingFlags&, const ImageForm&, const data::DataSource&,
                      const data::CacheSize&, std::optional<std::size_t> available);

/// "; or pack the images ...: cputrain data pack photos photos.ctpack --image-size 96", a file with
/// the same images in the same parts. Empty for what is no training.
std::string pack_advice(const TrainingFlags&, const ImageForm&);

struct ImagePlace {
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  std::size_t keep = kAll;             ///< so many images; others are decoded whenever needed
  std::vector<std::string> folders{};  ///< by rank: of the file on disk; empty: in memory
};

/// The place beside the memory of a training, which has none for images so far and is given what
/// they take. Says what it is. `all_needed`: by a device that keeps them. Error(usage) where a disk
/// was asked for, or is the only place, and has no room. Collective.
ImagePlace place_images(const Session&, const TrainingFlags&, const ImageForm&,
                        const data::CacheSize&, bool all_needed, TrainingMemory&);

/// Decides --data-on-device, the same on all ranks: whether the training images stay on the device
/// as a whole. `program`: bytes that the rest of the training takes there on this rank.
/// Error(usage) where that was asked for and cannot be. Collective where the backend has devices.
bool keep_images_on_device(const Session&, const TrainingPlan&, const MemoryBefore&,
                           std::size_t program);

}  // namespace cputrain::training
