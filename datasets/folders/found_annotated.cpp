// Data sets whose images and labels stand in COCO-like JSON files.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "datasets/folders/annotations.h"
#include "datasets/folders/folder_tree.h"
#include "datasets/folders/found.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

/// A training file and, where there is one, a validation file; paths in them are below `folder`.
struct Files {
  std::string folder, train, validation;
};

void add_unlabelled(const Annotations& annotations, Found& found) {
  for (const std::string& path : annotations.unlabelled) {
    found.unread.push_back({path, unread_reason(Unread::no_label)});
  }
}

Found open_annotated(const Files& files, LabelBy by, data::Exif exif) {
  Annotations train = read_annotations(files.train, by);
  if (train.files.empty()) {
    fail(ExitCode::data, fmt::format("'{}' labels no image (there is nothing to train on); its "
                                     "'annotations' must name its 'images'",
                                     files.train));
  }
  const std::vector<std::string> classes = classes_of(train.files);
  Found found;
  found.one_class_remedy = "its annotations must use two categories";
  found.train = indices(0, train.files.size());
  add_unlabelled(train, found);
  if (!files.validation.empty()) {
    Annotations validation = read_annotations(files.validation, by);
    for (ImageFile& file : validation.files) {
      if (!std::ranges::binary_search(classes, file.label)) {
        fail(ExitCode::data,
             fmt::format("'{}' has images of class '{}', of which '{}' has none (it cannot be "
                         "learnt); use files that belong together",
                         files.validation, file.label, files.train));
      }
      train.files.push_back(std::move(file));
    }
    found.validation = indices(found.train.size(), train.files.size());
    add_unlabelled(validation, found);
    found.validation_name = fs::path(files.validation).filename().string();
  }
  set_files(found, files.folder, std::move(train.files), classes, exif);
  return found;
}

/// The file named like train2017.json in the folder or in its folder `annotations`; of several
/// years the last.
std::string find_json(const std::string& folder, const std::string& part) {
  std::string newest;
  for (const std::string& place : {folder, folder + "/annotations"}) {
    std::error_code error;
    for (fs::directory_iterator entry(place, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      const bool fits = name.size() == part.size() + 9 && name.starts_with(part) &&
                        name.ends_with(".json") &&
                        std::all_of(name.begin() + static_cast<std::ptrdiff_t>(part.size()),
                                    name.end() - 5, [](char c) { return c >= '0' && c <= '9'; });
      if (fits) newest = std::max(newest, entry->path().string());
    }
    if (!newest.empty()) break;
  }
  return newest;
}

std::string folder_of(const std::string& file) {
  const std::string folder = fs::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

Found find_inat(const std::string& folder, data::Exif exif) {
  const std::string train = find_json(folder, "train");
  if (train.empty()) {
    fail(ExitCode::data,
         fmt::format("'{}' holds no train2017.json (inat: reads the annotations of iNaturalist "
                     "beside its folder train_val_images); name the folder that holds both, or "
                     "use coco:FILE.json",
                     folder));
  }
  return open_annotated({folder, train, find_json(folder, "val")}, LabelBy::super_category, exif);
}

Found find_coco(const std::string& train, const std::string& validation, data::Exif exif) {
  return open_annotated({folder_of(train), train, validation}, LabelBy::category, exif);
}

}  // namespace cputrain::datasets
