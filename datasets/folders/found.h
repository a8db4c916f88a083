#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/pipeline.h"
#include "datasets/archives/archive_files.h"
#include "datasets/archives/archive_spec.h"
#include "datasets/folders/image_files.h"

/// The forms in which --data may name a data set. Each function lists one and decodes nothing;
/// Error(data) where it is not usable.
namespace cputrain::datasets {

/// A data set before it is split.
struct Found {
  std::unique_ptr<data::Dataset> dataset;
  std::vector<std::uint32_t> train, validation;  ///< ascending; the first may be divided further
  std::string validation_name;                   ///< its own part's; empty when it has none
  std::vector<std::uint32_t> test{};  ///< a test part beside a validation part; ascending
  std::string test_name{};
  std::string things = "files";
  std::vector<data::UnreadFile> unread{};
  std::string remark{};                      ///< one more sentence for the log
  std::vector<std::string> warnings{};       ///< what may be wrong, a sentence each
  std::vector<std::string> empty_classes{};  ///< classes without an image that are kept
  std::string one_class_remedy = "put each class into a folder of its own";  ///< see open_data()
  std::vector<std::string> containers{};  ///< files that hold many images each
};

/// begin, begin + 1, ..., end - 1.
std::vector<std::uint32_t> indices(std::size_t begin, std::size_t end);

/// Gives files of a further part the names of the classes that are known, where theirs look like
/// one of them alone: with a warning.
void take_alike_classes(ImageFiles&, const std::vector<std::string>& known, Found& found);

/// Makes the data set of `found`, with a warning where one file has two labels.
void set_files(Found& found, std::string root, ImageFiles, std::vector<std::string> classes,
               data::Exif, std::shared_ptr<const ArchiveFiles> = {});

/// Files of a folder of the disk, or of archives and their folder of this path.
struct FilesIn {
  std::shared_ptr<const ArchiveFiles> archive{};
  std::string path{};
};

/// The data set that a tree of files is. `name`: of its folder, for messages.
Found find_files(const data::DataRequest&, std::string name, FolderNode tree, FilesIn);

/// Only the request's folder and its rule for classes without images count.
Found find_folder(const data::DataRequest&);
Found find_archive(const data::DataRequest&, const ArchiveSpec&);
Found find_list(const std::string& path, data::Exif);
/// inat:DIR, by super category, and coco:TRAIN.json[,VALIDATION.json], by category; without a
/// second file `validation` is empty.
Found find_inat(const data::DataRequest&, const std::string& folder);
Found find_coco(const data::DataRequest&, const std::string& train, const std::string& validation);
Found find_idx(const std::string& folder);
/// cifar10:DIR and cifar100:DIR, with the whole text as `spec`.
Found find_cifar(const std::string& spec);
Found find_packed(const std::string& path);
Found find_synthetic(const std::string& spec, std::uint64_t seed);

}  // namespace cputrain::datasets
