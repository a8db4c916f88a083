#pragma once

#include <string>
#include <utility>
#include <vector>

#include "datasets/folders/empty_classes.h"
#include "datasets/folders/folder_tree.h"
#include "datasets/folders/image_files.h"

namespace cputrain::datasets {

/// What a folder of images holds.
struct FolderListing {
  ImageFiles files;                       ///< by class, then by path; paths below the data's folder
  std::vector<EmptyClass> empty_classes;  ///< class folders of which nothing is read
  std::vector<data::UnreadFile> unread;
};

/// Lists class folders (their names are the classes; images at any depth below), or, where there
/// are none or with `flat`, names `label.N.ext` as Kaggle has them. `path` stands before all paths.
FolderListing list_folder(const FolderNode&, const std::string& path, bool flat);

/// Paths of all files below a folder that are images by their names, at any depth, sorted; links
/// are followed, hidden files and system folders skipped, and other files are told. Error(data)
/// when a folder cannot be read.
std::pair<std::vector<std::string>, std::vector<data::UnreadFile>> list_images(
    const std::string& folder);

}  // namespace cputrain::datasets
