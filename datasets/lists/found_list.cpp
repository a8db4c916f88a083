// Data sets whose images and labels stand in a list.
#include <fmt/format.h>

#include <filesystem>
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
      rows_[list.parts[i]].add(list.files.path(i), list.files.label(i));
    }
  }

  Found find(const std::string& root, data::Exif exif) {
    if (rows_[Part::train].empty()) refuse("names no images for training; name some with train");
    const auto classes = rows_[Part::train].classes();
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
      const ImageFiles& rows = rows_[others[0]];
      if (const auto file = rows.first_beside(classes)) refuse_class(rows, *file);
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

  [[noreturn]] void refuse_class(const ImageFiles& rows, std::size_t file) const {
    refuse(
        fmt::format("says that '{}' validates, whose class '{}' has no training images (the "
                    "network could not answer it); use the same class names in both parts",
                    rows.path(file), rows.label(file)));
  }

  std::vector<std::uint32_t> add(Part part) {
    const std::size_t begin = files_.size();
    files_.add(std::exchange(rows_[part], {}));
    return indices(begin, files_.size());
  }

  /// Training does not need it.
  void add_test(Part part, const std::vector<std::string>& classes, Found& found) {
    const ImageFiles& rows = rows_[part];
    if (const auto file = rows.first_beside(classes)) {
      found.warnings.push_back(fmt::format(
          "the test images of '{}' are not used: the class '{}' of '{}' has no training "
          "images",
          path_, rows.label(*file), rows.path(*file)));
      return;
    }
    found.test = add(part);
    found.test_name = fmt::format("by its column '{}'", column_);
  }

  std::string path_, column_;
  std::map<Part, ImageFiles> rows_;
  ImageFiles files_;
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
    const auto classes = list.files.classes();
    found.train = indices(0, list.files.size());
    set_files(found, root, std::move(list.files), classes, exif);
  } else {
    DividedList divided(path, std::move(list));  // the list itself is gone behind this
    found = divided.find(root, exif);
  }
  found.one_class_remedy = "name images of another class, too";
  return found;
}

}  // namespace cputrain::datasets
