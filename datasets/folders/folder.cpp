#include "datasets/folders/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "datasets/decode/limits.h"
#include "datasets/folders/folder_layout.h"
#include "datasets/folders/folder_names.h"

namespace cputrain::datasets {
namespace {

std::string below(const std::string& path, const std::string& name) {
  return path.empty() ? name : fmt::format("{}/{}", path, name);
}

/// All images below one class folder.
void list_class(const FolderNode& node, const std::string& path, const std::string& label,
                ImageFiles& files) {
  for (const std::string& name : node.images) files.add(below(path, name), label);
  for (const FolderNode& folder : node.folders) {
    list_class(folder, below(path, folder.name), label, files);
  }
}

/// Files of the folder itself, beside its class folders.
void list_loose(const FolderNode& node, const std::string& path, FolderListing& listing) {
  for (const UnreadName& file : node.unread) {
    listing.unread.push_back({below(path, file.name), &unread_reason(file)});
  }
  for (const std::string& name : node.images) {
    listing.unread.push_back({below(path, name), &unread_reason(Unread::loose)});
  }
}

FolderListing list_classes(const FolderNode& node, const std::string& path) {
  FolderListing listing;
  for (const FolderNode& folder : node.folders) {
    const std::string inner = below(path, folder.name);
    if (folder.image_count > 0) {
      list_class(folder, inner, folder.name, listing.files);
    } else if (!is_empty_part(folder)) {
      const std::string named = path.empty() ? "" : fmt::format(" '{}'", inner);
      listing.empty_classes.push_back(
          {folder.name, fmt::format("its folder{} holds {}", named, unread_content(folder))});
    }
    add_unread(folder, inner, false, listing.unread);
  }
  list_loose(node, path, listing);
  return listing;
}

FolderListing list_flat(const FolderNode& node, const std::string& path) {
  FolderListing listing;
  std::map<std::string, std::vector<std::string>> by_label;
  for (const std::string& name : node.images) {
    const std::string label = label_in_name(name);
    if (label.empty()) {
      listing.unread.push_back({below(path, name), &unread_reason(Unread::no_label)});
    } else {
      by_label[label].push_back(below(path, name));
    }
  }
  for (const auto& [label, paths] : by_label) {
    for (const std::string& file : paths) listing.files.add(file, label);
  }
  for (const UnreadName& file : node.unread) {
    listing.unread.push_back({below(path, file.name), &unread_reason(file)});
  }
  for (const FolderNode& folder : node.folders) {
    add_unread(folder, below(path, folder.name), true, listing.unread);
  }
  return listing;
}

void add_images(const FolderNode& node, const std::string& path, std::vector<std::string>& images) {
  for (const std::string& name : node.images) images.push_back(path + "/" + name);
  for (const FolderNode& folder : node.folders)
    add_images(folder, path + "/" + folder.name, images);
}

}  // namespace

FolderListing list_folder(const FolderNode& node, const std::string& path, bool flat) {
  const bool classes = !node.folders_with_images().empty();
  if (!flat && (classes || !has_labels_in_names(node, 1))) return list_classes(node, path);
  return list_flat(node, path);
}

std::pair<std::vector<std::string>, std::vector<data::UnreadFile>> list_images(
    const std::string& folder) {
  std::vector<std::string> images;
  std::vector<data::UnreadFile> unread;
  const FolderNode tree = read_tree(folder);
  add_images(tree, folder, images);
  std::ranges::sort(images);
  add_unread(tree, folder, false, unread);
  return {std::move(images), std::move(unread)};
}

}  // namespace cputrain::datasets
