#pragma once

#include <optional>
#include <string>

#include "training/plan/image_place.h"
#include "training/session/session.h"

namespace cputrain::training {

/// When images are decoded, how many of them are kept, and where.
struct ImageKeeping {
  Decoding decoding = Decoding::first;
  std::optional<std::size_t> keep{};
  std::string folder{};  ///< empty: memory

  bool in_memory() const { return folder.empty() && !keep; }
};

/// Decodes once per node, with a progress line on standard error; damaged files are named there.
/// `meanwhile` lets most images come later, unless one of the others is damaged.
/// All ranks see the same data, images and pixels (of a sample that --seed draws) or
/// Error(disagree). Error(data), Error(usage) where a node has no room. Collective.
data::DecodedData decode_images(const Session&, const TrainingFlags&, const data::DataSource&,
                                const ImageForm&, const ImageKeeping& = {});

/// The same for images that are being decoded meanwhile, of which nothing else may be in use: those
/// that are missing, in the same memory.
data::DecodedData finish_decoding(const Session&, const TrainingFlags&, const data::DataSource&,
                                  const ImageForm&, const ImageKeeping&, const data::DecodedData&);

/// The lines about images that were decoded meanwhile, once all are there: so many seconds after
/// the training began to.
void say_all_decoded(const Session&, const data::DecodedData&, const ImageForm&, double seconds);

/// By rank, the folder of the file in which its node's decoded images will lie where they take so
/// many bytes; empty for memory. Collective; Error(usage) on all ranks alike where a node has no
/// room for them, which ends with `remedy`.
std::vector<std::string> image_folders(const Session&, std::size_t bytes,
                                       const std::string& remedy = "");

}  // namespace cputrain::training
