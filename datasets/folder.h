#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "datasets/file_dataset.h"

namespace cputrain {

/// What a folder of pictures holds.
struct FolderListing {
  std::vector<PictureFile> files;          ///< by class, then by path; paths below the folder
  std::vector<std::string> empty_classes;  ///< class folders without a picture
  std::size_t ignored = 0;                 ///< other files, pictures without a label
  std::size_t links = 0;                   ///< symbolic links, which are not followed
};

/// Lists class folders (their names are the classes; pictures at any depth below), or, where there
/// are none, flat names `label.N.ext` as Kaggle has them. Names that begin with a dot are skipped,
/// symbolic links are not followed. Error(data) when a folder cannot be read.
FolderListing list_folder(const std::filesystem::path&);

/// Paths of all files below a folder that are pictures by their names, at any depth, sorted; the
/// same names are skipped. Error(data) when a folder cannot be read.
std::vector<std::string> list_pictures(const std::string& folder);

/// Where the training and the validation pictures of a folder lie: `train` beside `val`,
/// `validation` or `test` (any case; the first of these that exists). A lone `train`, or one beside
/// Kaggle's unlabelled `test` or `test1`, has no validation part. Nothing when there is no split.
struct FolderParts {
  std::string train;
  std::optional<std::string> validation;
};
std::optional<FolderParts> find_parts(const std::filesystem::path&);

}  // namespace cputrain
