#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace cputrain::datasets {

/// Why a file of a folder is not read.
enum class Unread { ending, hidden, broken_link, back_link, no_file, no_label, loose, unused };
/// "broken link", "no image by its name", ...: for people and as a value in JSON.
std::string_view unread_reason(Unread);

struct UnreadName {
  std::string name;
  Unread why;
};

/// A folder and all below it, read once.
struct FolderNode {
  std::string name;
  std::vector<std::string> images;  ///< in this folder itself, sorted
  std::vector<UnreadName> unread;
  std::vector<FolderNode> folders;  ///< sorted by name
  std::size_t image_count = 0;      ///< here and below

  std::vector<const FolderNode*> folders_with_images() const;
};

/// Reads a folder with everything below it. Links are followed; one that leads back to a folder
/// above itself is cut. System folders are left out, and folders that hold output of training and
/// nothing else. Error(data) where a folder cannot be read, and for more than kMaxFiles images.
FolderNode read_tree(const std::filesystem::path&);

/// Whether no file lies in a folder or below it, read or not.
bool holds_no_file(const FolderNode&);

/// What lies in a folder and is not read, by ending: "12 .heic, 3 .txt, 1 broken link"; "nothing".
std::string unread_content(const FolderNode&);

/// Adds the files of a node that are not read, images included if `images_too`, with the path of
/// the node before their names.
void add_unread(const FolderNode&, const std::string& path, bool images_too,
                std::vector<data::UnreadFile>&);

}  // namespace cputrain::datasets
