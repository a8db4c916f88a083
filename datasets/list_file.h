#pragma once

#include <string>
#include <vector>

#include "datasets/file_dataset.h"

namespace cputrain {

/// Reads a list of pictures: a path, a tab, a class name a line (in .csv files without tabs the
/// last comma separates). Paths are relative to the list's folder or absolute. Empty lines and
/// lines that begin with '#' are skipped, and so is a first line "path<TAB>label". Error(data)
/// naming file and line.
std::vector<PictureFile> read_list(const std::string& path);

/// Whether the name ends in .tsv, .txt or .csv.
bool is_list_name(const std::string& path);

}  // namespace cputrain
