#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/pipeline.h"

/// A packed file: images decoded to one size, with names, classes and split, that are read when
/// they are needed instead of being decoded. The layout is in packed_format.h.
namespace cputrain::datasets {

struct PackedData {
  std::unique_ptr<data::Dataset> dataset;
  std::vector<std::uint32_t> train, validation, test;  ///< as they were when it was packed
};

/// Whether the name ends in .ctpack.
bool is_packed(const std::string& path);

/// Opens a packed file. Everything but the pixels is checked here, they whenever they are read: by
/// a checksum that was read here. Error(data).
PackedData open_packed(const std::string& path);

/// Decodes the samples of the source into a packed file, a few at a time; damaged images are left
/// out and named. Error(data) where none is left, or none of a class unless that is allowed,
/// Error(output), Error(usage) for a name that would not be recognised.
data::PackReport write_packed(const data::DataSource&, const std::string& path,
                              const data::DecodeRequest&);

}  // namespace cputrain::datasets
