#pragma once

#include <string>
#include <vector>

#include "datasets/folders/folder_tree.h"

namespace cputrain::datasets {

/// The only folder with images, where no image lies beside it; else nothing.
const FolderNode* only_folder(const FolderNode&);

/// Whether images lie in the folder itself or in a folder such as `images` that is all it holds.
bool holds_images(const FolderNode&);

/// "'cat', 'dog', ...", at most six.
std::string quoted(const std::vector<std::string>& names);

/// Refuses folders that would be trained as classes and are most likely none: parts of a split,
/// copies of the data or of each other, pieces of one set, images beside their annotations. `node`
/// holds the class folders, `path` names it. Error(data) naming the folders.
void check_class_folders(const FolderNode& node, const std::string& path);

}  // namespace cputrain::datasets
