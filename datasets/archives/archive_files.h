#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/archives/archive_entry.h"
#include "datasets/folders/folder_tree.h"
#include "datasets/formats/container_file.h"
#include "datasets/loader/read_file.h"

namespace cputrain::datasets {

/// The files of one archive, or of several that hold parts of one tree (shards), read at random
/// where they lie. Nothing is unpacked to disk, and paths are names: none is opened. From many
/// threads.
class ArchiveFiles {
 public:
  /// Lists the archives. `memory`: as for HeldFiles. Error(data) where an archive is damaged,
  /// encrypted or too large unpacked, or has paths that no tool writes or two files of one path.
  ArchiveFiles(const std::vector<std::string>& archives, std::optional<std::size_t> memory);

  FolderNode tree() const;
  /// Whether images have classes as WebDataset writes them: `7.jpg` beside `7.cls`. Then paths
  /// begin with the names of archives where these are several: names are theirs alone.
  bool has_labels() const { return has_labels_; }
  /// The number in the label file of an image; empty where it has none. Error(data) for another
  /// text.
  std::string label(std::string_view image) const;

  /// "photos.zip/cat/1.jpg": archive and path.
  std::string name(std::string_view path) const;
  std::uint64_t bytes(std::string_view path) const { return find(path)->bytes; }
  /// What compressed archives take of memory.
  std::uint64_t held_bytes() const { return held_.bytes(); }
  /// All of a file that is listed, with its memory claimed first where it is an image's.
  /// Error(data) where its archive has changed since it was listed.
  FileContent read(std::string_view path, DecodingBudget::Claim* claim) const;

 private:
  /// An entry whose path and archive stand elsewhere: there may be millions.
  struct Entry {
    std::uint64_t path_begin, bytes, packed, place;
    std::uint32_t path_bytes, archive, checksum;
    EntryKind kind;
    Packing packing;
  };

  void list(std::uint32_t archive);
  void list_zip(std::uint32_t archive);
  void add(std::uint32_t archive, const ArchiveEntry&);
  std::string checked_path(const ContainerFile&, const ArchiveEntry&) const;
  void check_content(const ContainerFile&, const ArchiveEntry&, std::string_view path) const;
  void sort();
  bool finds_labels() const;
  void begin_paths_with_archives();
  void check_paths();
  std::string label_path(std::string_view image) const;

  std::string_view path(const Entry& entry) const {
    return std::string_view(paths_).substr(entry.path_begin, entry.path_bytes);
  }
  /// Null where there is none.
  const Entry* find(std::string_view path) const;
  FileContent unpacked(const Entry&, DecodingBudget::Claim* claim) const;

  std::deque<ContainerFile> archives_;
  HeldFiles held_;
  std::string paths_;           ///< one behind the other
  std::vector<Entry> entries_;  ///< sorted by path
  bool has_labels_ = false;
};

}  // namespace cputrain::datasets
