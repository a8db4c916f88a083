#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace cputrain::datasets {

/// Why a file of a folder is not read.
enum class Unread {
  name,
  hidden,
  broken_link,
  back_link,
  archived_link,
  no_file,
  no_label,
  loose,
  unused
};

struct UnreadName {
  std::string name;
  Unread why;
};

/// A file's; where its name says why, this is what the name is of (kind_of_name()).
const data::UnreadReason& unread_reason(const UnreadName&);
/// The same for an image, whose name does not matter.
inline const data::UnreadReason& unread_reason(Unread why) { return unread_reason({{}, why}); }

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

/// An entry of an archive.
struct TreeEntry {
  std::string_view path;       ///< of a folder with '/' behind it
  std::optional<Unread> flaw;  ///< why it cannot be read, whatever its name
};

/// The same of entries, each once, sorted by their paths.
FolderNode tree_of(std::span<const TreeEntry>);

/// Whether no file lies in a folder or below it, read or not.
bool holds_no_file(const FolderNode&);

/// What lies in a folder and is not read, by kind: "SVG 12, texts 3, broken link 1"; "nothing".
std::string unread_content(const FolderNode&);

/// Adds the files of a node that are not read, images included if `images_too`, with the path of
/// the node before their names.
void add_unread(const FolderNode&, const std::string& path, bool images_too,
                std::vector<data::UnreadFile>&);

}  // namespace cputrain::datasets
