// Data sets whose images are files in archives.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "datasets/archives/archive_files.h"
#include "datasets/folders/class_folders.h"
#include "datasets/folders/folder_layout.h"
#include "datasets/folders/found.h"

namespace cputrain::datasets {
namespace {

using Archive = std::shared_ptr<const ArchiveFiles>;

std::string path_in(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

/// Images that have a file with the number of their class beside them, as WebDataset has it. The
/// numbers are the names of the classes.
class LabelledFinder {
 public:
  LabelledFinder(const ArchiveSpec& spec, Archive archive)
      : spec_(spec), archive_(std::move(archive)) {}

  Found find(const FolderNode& tree, data::Exif exif) {
    add(tree, "");
    ImageFiles files;
    for (const auto& [label, paths] : by_label_) {
      for (std::size_t i = 0; i < paths.size(); ++i) files.add(paths[i], label);
    }
    if (files.empty()) {
      fail(ExitCode::data, fmt::format("no image of '{}' has a class (1.jpg has its number in "
                                       "1.cls); check how the archive was made",
                                       spec_.name));
    }
    found_.train = indices(0, files.size());
    found_.one_class_remedy = "add archives with images of another class, too";
    auto classes = files.classes();
    set_files(found_, "", std::move(files), std::move(classes), exif, archive_);
    return std::move(found_);
  }

 private:
  void add(const FolderNode& node, const std::string& path) {
    for (const std::string& name : node.images) {
      const std::string image = path_in(path, name);
      if (const std::string label = archive_->label(image); !label.empty()) {
        by_label_[label].add(image);
      } else {
        found_.unread.push_back({image, &unread_reason(Unread::no_label)});
      }
    }
    for (const UnreadName& file : node.unread) {
      if (file.name.ends_with(".cls")) continue;
      found_.unread.push_back({path_in(path, file.name), &unread_reason(file)});
    }
    for (const FolderNode& folder : node.folders) add(folder, path_in(path, folder.name));
  }

  const ArchiveSpec& spec_;
  Archive archive_;
  std::map<std::string, PackedTexts> by_label_;
  Found found_;
};

/// The folder of this path in the tree. Error(data) where there is none.
FolderNode take_folder(FolderNode tree, const ArchiveSpec& spec) {
  for (const std::string& name : split(spec.inner, '/')) {
    if (name.empty()) continue;
    const auto found = std::ranges::find(tree.folders, name, &FolderNode::name);
    if (found == tree.folders.end()) {
      std::vector<std::string> there;
      for (const FolderNode& folder : tree.folders) there.push_back("'" + folder.name + "'");
      fail(ExitCode::data,
           fmt::format("'{}' has no folder '{}' (beside it are: {}); check the path", spec.name,
                       spec.inner, there.empty() ? "none" : first_few(there)));
    }
    FolderNode inner = std::move(*found);
    tree = std::move(inner);
  }
  return tree;
}

/// Whether one folder holds all images: `photos` of photos/cat/1.jpg, as `zip -r` and `tar` write
/// it. A class with images in it is none.
bool is_wrapper(const FolderNode& folder) {
  return !folder.folders_with_images().empty() || has_labels_in_names(folder, 2);
}

/// With a word on memory that no plan knows of.
Found with_held(Found found, const ArchiveFiles& archive) {
  if (const std::uint64_t bytes = archive.held_bytes(); bytes > 0) {
    found.remark +=
        fmt::format("{}Each rank keeps {} of its compressed archives in memory.",
                    found.remark.empty() ? "" : " ", bytes_text(static_cast<double>(bytes)));
  }
  return found;
}

}  // namespace

Found find_archive(const data::DataRequest& request, const ArchiveSpec& spec) {
  const auto archive = std::make_shared<const ArchiveFiles>(spec.archives, request.memory);
  FolderNode tree = archive->tree();
  if (spec.inner.empty() && archive->has_labels()) {
    return with_held(LabelledFinder(spec, archive).find(tree, request.exif), *archive);
  }
  tree = take_folder(std::move(tree), spec);
  std::string inner = join(split(spec.inner, '/'), "/");
  while (inner.ends_with('/')) inner.pop_back();
  const FolderNode* only = spec.inner.empty() ? only_folder(tree) : nullptr;
  std::vector<data::UnreadFile> beside;
  if (only != nullptr && is_wrapper(*only)) {
    inner = only->name;
    FolderNode folder = *only;
    std::erase_if(tree.folders, [&](const FolderNode& one) { return one.name == inner; });
    add_unread(tree, "", true, beside);
    tree = std::move(folder);
  }
  Found found = find_files(request, path_in(spec.name, inner), std::move(tree), {archive, inner});
  std::ranges::move(beside, std::back_inserter(found.unread));
  return with_held(std::move(found), *archive);
}

}  // namespace cputrain::datasets
