#pragma once

#include <string>
#include <vector>

#include "datasets/folders/folder_names.h"
#include "datasets/folders/image_files.h"
#include "datasets/lists/text_pieces.h"

namespace cputrain::datasets {

struct ListContent {
  ImageFiles files;         ///< one a row
  std::vector<Part> parts;  ///< each file's; empty where no column has it
  std::string part_column;  ///< its name
};

/// Reads a list of images: a path and a class name per line, as read_table() has them, or any
/// columns under a header that names these two ("filename", "image_path", ...; "label", "class",
/// ...). A further column all of whose values name parts of a split divides the rows. Paths are
/// relative to the list's folder or absolute. Error(data) naming file and line, also where the
/// first line looks like a header of other names, and where a column seems to name the part in a
/// way that is not understood.
ListContent read_list(const std::string& path);

/// The same for its text; `path` stands in messages, and its folder is where images are looked for.
ListContent read_list_text(const TextPieces&, const std::string& path);

/// Whether the name ends in .tsv, .txt or .csv.
bool is_list_name(const std::string& path);

}  // namespace cputrain::datasets
