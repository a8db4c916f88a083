#pragma once

#include <optional>
#include <string>
#include <vector>

#include "datasets/folders/folder_tree.h"

namespace cputrain::datasets {

/// A folder of a split, or the data's own folder.
struct PartFolder {
  std::string path;  ///< below the data's folder; empty for that itself
  const FolderNode* node = nullptr;
};

struct LeftOut {
  PartFolder folder;
  std::string why;  ///< "its images have no labels"
};

/// What the folders of a data set's folder are.
struct FolderLayout {
  std::optional<PartFolder> train, validation, test;  ///< nothing in `train`: it has no parts
  bool flat = false;                ///< without parts: names such as cat.1.jpg have the classes
  std::vector<LeftOut> left_out{};  ///< folders that are neither a part nor a class
};

/// Whether a folder is named like a part and holds no file: it cannot be meant as a class.
bool is_empty_part(const FolderNode&);

/// Whether names of images here give at least `least` different labels.
bool has_labels_in_names(const FolderNode&, std::size_t least);

/// Distinguishes parts of a split from classes. A folder that holds class folders, or images named
/// like cat.1.jpg, can only be a part, and its name must say which; a folder that holds images is a
/// class, at any depth below it. `test` validates where nothing else does. Images without labels in
/// a folder for testing or prediction are left out, and what check_class_folders() refuses is
/// refused. Error(data) naming the folders of anything that can be read in two ways: training would
/// take a wrong guess without complaint.
FolderLayout find_layout(const FolderNode&, const std::string& path);

}  // namespace cputrain::datasets
