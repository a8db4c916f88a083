// Data sets whose images and labels stand in COCO-like JSON files.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "datasets/folders/empty_classes.h"
#include "datasets/folders/folder_tree.h"
#include "datasets/folders/found.h"
#include "datasets/lists/annotation_files.h"
#include "datasets/lists/annotations.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

/// A training file and, where there is one, a validation file; paths in them are below `folder`, if
/// the images are there.
struct Files {
  std::string folder, train, validation;
};

/// Annotations with the folder that their paths are below.
struct Placed {
  Annotations annotations;
  fs::path folder;
};

Placed read_placed(const std::string& json, const std::string& usual, LabelBy by) {
  Placed placed{read_annotations(json, by), {}};
  placed.folder = folder_of_images(json, usual, placed.annotations.files);
  return placed;
}

/// What stands before paths of both to make them those below `root`.
std::string way_from(const fs::path& root, const Placed& placed) {
  const fs::path inner = placed.folder.lexically_normal().lexically_relative(root);
  return inner.empty() || inner == "." ? "" : (inner / "").string();
}

/// The folder that holds both.
fs::path common_folder(const fs::path& a, const fs::path& b) {
  fs::path common;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end() && *x == *y; ++x, ++y) {
    common /= *x;
  }
  return common.empty() ? fs::path(".") : common;
}

class AnnotatedFinder {
 public:
  AnnotatedFinder(const data::DataRequest& request, Files files, LabelBy by)
      : request_(request), files_(std::move(files)), by_(by) {}

  Found find() {
    Placed train = read_placed(files_.train, files_.folder, by_);
    if (train.annotations.files.empty()) {
      fail(ExitCode::data, fmt::format("'{}' labels no image (there is nothing to train on); its "
                                       "'annotations' must name its 'images'",
                                       files_.train));
    }
    std::vector<std::string> classes = train.annotations.files.classes();
    look_at_categories(train.annotations, classes);
    fs::path root = train.folder;
    Placed validation;
    if (!files_.validation.empty()) {
      validation = read_placed(files_.validation, train.folder.string(), by_);
      check_classes(validation.annotations.files, train.annotations.categories, classes);
      if (validation.folder != root) root = common_folder(root, validation.folder);
    }
    found_.one_class_remedy = "its annotations must use two categories";
    tell_folders(train, validation);
    ImageFiles all;
    found_.train = add(std::move(train), root, all);
    found_.validation = add(std::move(validation), root, all);
    if (!files_.validation.empty()) {
      found_.validation_name = fs::path(files_.validation).filename().string();
    }
    set_files(found_, root.string(), std::move(all), classes, request_.exif);
    return std::move(found_);
  }

 private:
  std::vector<std::uint32_t> add(Placed placed, const fs::path& root, ImageFiles& all) {
    const std::string before = way_from(root, placed);
    for (const std::string& path : placed.annotations.unlabelled) {
      found_.unread.push_back({before + path, &unread_reason(Unread::no_label)});
    }
    const std::size_t begin = all.size();
    all.add(placed.annotations.files, before);
    return indices(begin, all.size());
  }

  /// Where images do not lie beside the file that names them.
  void tell_folders(const Placed& train, const Placed& validation) {
    if (train.folder == fs::path(files_.folder).lexically_normal()) return;
    const bool two = !validation.folder.empty() && validation.folder != train.folder;
    found_.remark = fmt::format("Images are in '{}'{}.", train.folder.string(),
                                two ? fmt::format(" and '{}'", validation.folder.string()) : "");
  }

  /// Files name categories that they do not use (exports have one above all others), so these are
  /// no classes; but people should know.
  void look_at_categories(const Annotations& annotations, std::vector<std::string>& classes) {
    if (!annotations.doubled.empty()) {
      found_.warnings.push_back(
          fmt::format("'{}' has several categories of one name: {}; each "
                      "name is one class",
                      files_.train, first_few(annotations.doubled)));
    }
    std::vector<EmptyClass> unused;
    for (const std::string& name : annotations.categories) {
      if (std::ranges::binary_search(classes, name)) continue;
      unused.push_back({name, fmt::format("'{}' annotates none", files_.train)});
    }
    if (unused.empty()) return;
    if (request_.to_evaluate) {
      std::erase_if(unused, [this](const EmptyClass& one) {
        return std::ranges::find(request_.known_classes, one.name) == request_.known_classes.end();
      });
    } else if (request_.allow_empty_classes) {
      found_.warnings.push_back(check_empty_classes(unused, true));
    } else {
      found_.warnings.push_back(describe_dropped(unused));
      return;
    }
    for (EmptyClass& one : unused) {
      classes.push_back(one.name);
      found_.empty_classes.push_back(std::move(one.name));
    }
    std::ranges::sort(classes);
  }

  std::string describe_dropped(const std::vector<EmptyClass>& unused) const {
    std::vector<std::string> names;
    for (const EmptyClass& one : unused) names.push_back(fmt::format("'{}'", one.name));
    return fmt::format(
        "'{}' annotates no image with categor{} {}: {} no output of the network "
        "(--allow-empty-classes keeps one for each)",
        files_.train, names.size() == 1 ? "y" : "ies", first_few(names),
        names.size() == 1 ? "it is" : "they are");
  }

  void check_classes(ImageFiles& files, const std::vector<std::string>& categories,
                     const std::vector<std::string>& classes) {
    take_alike_classes(files, classes, found_);
    const auto file = files.first_beside(classes);
    if (!file) return;
    const bool named = std::ranges::binary_search(categories, files.label(*file));
    fail(ExitCode::data,
         fmt::format("'{}' has images of class '{}', of which '{}' has none (it cannot be "
                     "learnt); use files that belong together{}",
                     files_.validation, files.label(*file), files_.train,
                     named ? ", or keep the class with --allow-empty-classes" : ""));
  }

  const data::DataRequest& request_;
  Files files_;
  LabelBy by_;
  Found found_;
};

}  // namespace

Found find_inat(const data::DataRequest& request, const std::string& folder) {
  const std::string train = find_yearly_json(folder, "train");
  if (train.empty()) {
    fail(ExitCode::data,
         fmt::format("'{}' holds no train2017.json (inat: reads the annotations of iNaturalist "
                     "beside its folder train_val_images); name the folder that holds both, or "
                     "use {}",
                     folder, annotations_or(folder, "coco:FILE.json")));
  }
  return AnnotatedFinder(request, {folder, train, find_yearly_json(folder, "val")},
                         LabelBy::super_category)
      .find();
}

Found find_coco(const data::DataRequest& request, const std::string& train,
                const std::string& validation) {
  std::error_code ignored;
  if (fs::is_directory(train, ignored)) {
    fail(ExitCode::data,
         fmt::format("'{}' is a folder (coco: reads annotation files); name its files: --data {}",
                     train, annotations_or(train, "coco:TRAIN.json,VAL.json")));
  }
  return AnnotatedFinder(request, {folder_of(train), train, validation}, LabelBy::category).find();
}

}  // namespace cputrain::datasets
