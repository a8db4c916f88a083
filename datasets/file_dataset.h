#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace cputrain {

/// A labelled picture file, as a folder or a list names it.
struct PictureFile {
  std::string path;   ///< below the root, with '/' between names; or absolute
  std::string label;  ///< class name
};

/// Reads, decodes and resizes one picture file, for data sets and for `predict`.
ReadResult read_picture(const std::string& path, Shape image, Resize, std::span<std::uint8_t> dst);

/// Whether the name ends in .bmp, .gif, .jpeg, .jpg or .png, any case: Keras' list.
bool is_picture_name(std::string_view name);

/// Pictures in files. `classes` holds every label; its order numbers them. The sizes of the files
/// go into the fingerprint and are asked for here.
std::unique_ptr<Dataset> make_file_dataset(std::string root, std::vector<PictureFile> files,
                                           std::vector<std::string> classes);

}  // namespace cputrain
