#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "data/pipeline.h"
#include "training/plan/compiled_training.h"
#include "training/plan/training_memory.h"

/// Where the decoded images of a training lie: in memory, or, where that has no room for them, in a
/// file on disk, or nowhere; the memory that they take there; whether a device has a copy of them;
/// and how they are decoded.
namespace cputrain::training {

using data::ImageForm;

/// Error(usage) where the images of a source need more than a node has, with the largest that would
/// fit, and pack_advice().
void check_images_fit(const TrainingFlags&, const ImageForm&, const data::DataSource&,
                      const data::CacheSize&, std::optional<std::size_t> available);

/// "; or pack the images ...: cputrain data pack photos photos.ctpack --image-size 96", a file with
/// the same images in the same parts. Empty for what is no training.
std::string pack_advice(const TrainingFlags&, const ImageForm&);

/// Where images are kept, how many of them, and when they are decoded.
struct ImagePlace {
  std::optional<std::size_t> keep{};   ///< so many; others are decoded whenever needed. Else all
  std::vector<std::string> folders{};  ///< by rank: of the file on disk; empty: in memory
  Decoding decoding = Decoding::first;

  bool in_memory() const { return folders.empty() && !keep; }
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

/// Decodes once per node, with a progress line on standard error; damaged files are named there.
/// `meanwhile` lets most images come later, unless one of the others is damaged.
/// All ranks see the same data, images and pixels (of a sample that --seed draws) or
/// Error(disagree). Error(data), Error(usage) where a node has no room. Collective.
data::DecodedData decode_images(const Session&, const TrainingFlags&, const data::DataSource&,
                                const ImageForm&, const ImagePlace& = {});

/// The same for images that are being decoded meanwhile, of which nothing else may be in use: those
/// that are missing, in the same memory.
data::DecodedData finish_decoding(const Session&, const TrainingFlags&, const data::DataSource&,
                                  const ImageForm&, const ImagePlace&, const data::DecodedData&);

/// The lines about images that were decoded meanwhile, once all are there: so many seconds after
/// the training began to.
void say_all_decoded(const Session&, const data::DecodedData&, const ImageForm&, double seconds);

/// By rank, the folder of the file in which its node's decoded images will lie where they take so
/// many bytes; empty for memory. Collective; Error(usage) on all ranks alike where a node has no
/// room for them, which ends with `remedy`.
std::vector<std::string> image_folders(const Session&, std::size_t bytes,
                                       const std::string& remedy = "");

}  // namespace cputrain::training
