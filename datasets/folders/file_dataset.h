#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "datasets/archives/archive_files.h"
#include "datasets/folders/image_files.h"

namespace cputrain::datasets {

/// Reads, decodes and resizes one image file, for data sets and for `predict`.
data::ReadResult read_image(const std::string& path, Shape image, const data::Resizing&, data::Exif,
                            std::span<std::uint8_t> dst);

struct FileData {
  std::unique_ptr<data::Dataset> dataset;
  std::string conflict;  ///< a sentence about files that have two labels; or empty
};

/// Images in files, those of archives where they are given: `root` is a folder in them then, or
/// empty. `classes` holds every label; its order numbers them. The sizes of the files go into the
/// fingerprint and are asked for here, and which files are one and the same (hard and symbolic
/// links, paths that a list names twice).
FileData make_file_dataset(std::string root, ImageFiles, std::vector<std::string> classes,
                           data::Exif, std::shared_ptr<const ArchiveFiles> archive = {});

}  // namespace cputrain::datasets
