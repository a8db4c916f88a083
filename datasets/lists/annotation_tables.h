#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "datasets/folders/image_files.h"
#include "datasets/lists/text_pieces.h"

namespace cputrain::datasets {

struct AnnotationCategory {
  std::string name, super;
};

/// The members of the file that matter, as they stand there.
struct AnnotationTables {
  std::vector<std::int64_t> images;  ///< ids
  PackedTexts files;                 ///< each image's
  std::vector<std::pair<std::int64_t, AnnotationCategory>> categories;
  std::vector<std::pair<std::int64_t, std::int64_t>> annotations;  ///< image, category
};

/// What is wrong; the caller adds the path.
struct WrongAnnotations {
  std::string problem;
};

/// Reads the three lists of a COCO-like file and nothing else of it, token by token. Throws
/// WrongAnnotations for broken JSON, nesting deeper than 32 levels, and entries that lack or double
/// what they need.
AnnotationTables read_tables(const TextPieces&);

}  // namespace cputrain::datasets
