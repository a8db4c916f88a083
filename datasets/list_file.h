#pragma once

#include <string>
#include <vector>

#include "datasets/file_dataset.h"

namespace cputrain {

/// Reads a list of images: a path and a class name per line, as read_table() has them, or any
/// columns under a header that names these two ("filename", "image_path", ...; "label", "class",
/// ...). Paths are relative to the list's folder or absolute. Error(data) naming file and line,
/// also where the first line looks like a header of other names.
std::vector<PictureFile> read_list(const std::string& path);

/// Whether the name ends in .tsv, .txt or .csv.
bool is_list_name(const std::string& path);

}  // namespace cputrain
