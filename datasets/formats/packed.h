#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/pipeline.h"

/// A packed file: images decoded to one size, with names, classes and split, that is mapped
/// instead of being decoded. The layout is in packed_format.h.
namespace cputrain::datasets {

struct PackedData {
  std::unique_ptr<data::Dataset> dataset;
  std::vector<std::uint32_t> train, validation, test;  ///< as they were when it was packed
};

/// Whether the name ends in .ctpack.
bool is_packed(const std::string& path);

/// Maps a packed file. Everything but the pixels is checked here, they in inspect(). Error(data).
PackedData open_packed(const std::string& path);

/// Decodes the samples of the source into a packed file, a few at a time; damaged images are left
/// out and named. Error(data) where none is left, or none of a class unless that is allowed,
/// Error(output), Error(usage) for a name that would not be recognised.
data::PackReport write_packed(const data::DataSource&, const data::PackRequest&);

}  // namespace cputrain::datasets
