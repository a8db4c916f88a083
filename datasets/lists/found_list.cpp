// Data sets whose images and labels stand in a list.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "datasets/folders/found.h"
#include "datasets/lists/list_file.h"

namespace cputrain::datasets {
namespace {

/// A list with a column of parts, which are used as those of a folder.
class DividedList {
 public:
  DividedList(std::string path, ListContent list)
      : path_(std::move(path)), column_(list.part_column) {
    for (std::size_t i = 0; i < list.files.size(); ++i) {
      rows_[list.parts[i]].push_back(std::move(list.files[i]));
    }
  }

  Found find(const std::string& root, data::Exif exif) {
    if (rows_[Part::train].empty()) refuse("names no images for training; name some with train");
    const auto classes = classes_of(rows_[Part::train]);
    std::vector<Part> others;
    for (const Part part : {Part::validation, Part::evaluation, Part::test}) {
      if (!rows_[part].empty()) others.push_back(part);
    }
    if (others.size() == 3) {
      refuse(
          "names images for evaluation and for test beside those for validation (which are the "
          "test part cannot be told); name both alike");
    }
    Found found;
    found.train = add(Part::train);
    for (const Part part : others) take_alike_classes(rows_[part], classes, found);
    if (!others.empty()) {
      if (const ImageFile* file = unknown(others[0], classes)) refuse_class(*file);
      found.validation = add(others[0]);
      found.validation_name = fmt::format("by its column '{}'", column_);
    }
    if (others.size() == 2) add_test(others[1], classes, found);
    if (const std::size_t count = rows_[Part::prediction].size(); count > 0) {
      found.remark = fmt::format("Not used: {} for prediction.", counted(count, "image"));
    }
    set_files(found, root, std::move(files_), classes, exif);
    return found;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail(ExitCode::data, fmt::format("'{}': the column '{}' {}", path_, column_, what));
  }

  [[noreturn]] void refuse_class(const ImageFile& file) const {
    refuse(
        fmt::format("says that '{}' validates, whose class '{}' has no training images (the "
                    "network could not answer it); use the same class names in both parts",
                    file.path, file.label));
  }

  std::vector<std::uint32_t> add(Part part) {
    const std::size_t begin = files_.size();
    std::ranges::move(rows_[part], std::back_inserter(files_));
    return indices(begin, files_.size());
  }

  const ImageFile* unknown(Part part, const std::vector<std::string>& classes) {
    const auto file = std::ranges::find_if(rows_[part], [&](const ImageFile& one) {
      return !std::ranges::binary_search(classes, one.label);
    });
    return file == rows_[part].end() ? nullptr : &*file;
  }

  /// Training does not need it.
  void add_test(Part part, const std::vector<std::string>& classes, Found& found) {
    if (const ImageFile* file = unknown(part, classes)) {
      found.warnings.push_back(fmt::format(
          "the test images of '{}' are not used: the class '{}' of '{}' has no training "
          "images",
          path_, file->label, file->path));
      return;
    }
    found.test = add(part);
    found.test_name = fmt::format("by its column '{}'", column_);
  }

  std::string path_, column_;
  std::map<Part, std::vector<ImageFile>> rows_;
  std::vector<ImageFile> files_;
};

}  // namespace

Found find_list(const std::string& path, data::Exif exif) {
  ListContent list = read_list(path);
  if (list.files.empty()) {
    fail(ExitCode::data, "list file '" + path +
                             "' names no images (nothing to train on); its lines "
                             "are a path, a tab and a class name");
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const std::string root = folder.empty() ? "." : folder;
  Found found;
  if (list.parts.empty()) {
    const auto classes = classes_of(list.files);
    found.train = indices(0, list.files.size());
    set_files(found, root, std::move(list.files), classes, exif);
  } else {
    found = DividedList(path, std::move(list)).find(root, exif);
  }
  found.one_class_remedy = "name images of another class, too";
  return found;
}

}  // namespace cputrain::datasets
