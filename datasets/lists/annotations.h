#pragma once

#include <string>
#include <vector>

#include "datasets/folders/image_files.h"
#include "datasets/lists/text_pieces.h"

namespace cputrain::datasets {

/// What names the classes: the category ("Danaus plexippus") or its super category ("Insecta").
enum class LabelBy { category, super_category };

/// Labelled images of a COCO-like file.
struct Annotations {
  ImageFiles files;                     ///< in the order of "images"
  std::vector<std::string> unlabelled;  ///< paths of images without an annotation
  std::vector<std::string> categories;  ///< all names of classes, used or not, each once, sorted
  std::vector<std::string> doubled;     ///< names that several categories have; not of super ones
};

/// Reads a JSON object with "images" (id, file_name), "categories" (id, name, supercategory) and
/// "annotations" (image_id, category_id), as COCO and iNaturalist have them; other keys are
/// skipped. The file is taken as hostile: Error(data) with its path for broken JSON, more than 32
/// levels, more than 2 GiB, missing or doubled keys and ids, unknown ids, images of two classes,
/// and file names that leave the folder.
Annotations read_annotations(const std::string& path, LabelBy);
/// The same for its text. WrongAnnotations.
Annotations parse_annotations(const TextPieces&, LabelBy);

}  // namespace cputrain::datasets
