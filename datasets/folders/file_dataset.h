#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "datasets/folders/image_files.h"

namespace cputrain::datasets {

/// Reads, decodes and resizes one image file, for data sets and for `predict`.
data::ReadResult read_image(const std::string& path, Shape image, const data::Resizing&, data::Exif,
                            std::span<std::uint8_t> dst);

/// Whether the name ends in one of the endings of images that are looked at, any case: those of
/// Keras (.bmp .gif .jpeg .jpg .png), .jfif, .jpe, .tif, .tiff and .webp. What a file is depends on
/// its content.
bool is_image_file_name(std::string_view name);
/// These endings, for messages: ".bmp .gif ...".
std::string image_endings();

struct FileData {
  std::unique_ptr<data::Dataset> dataset;
  std::string conflict;  ///< a sentence about files that have two labels; or empty
};

/// Images in files. `classes` holds every label; its order numbers them. The sizes of the files go
/// into the fingerprint and are asked for here, and which files are one and the same (hard and
/// symbolic links, paths that a list names twice).
FileData make_file_dataset(std::string root, ImageFiles, std::vector<std::string> classes,
                           data::Exif);

}  // namespace cputrain::datasets
