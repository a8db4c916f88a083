#include "datasets/folders/folder_tree.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "datasets/decode/limits.h"
#include "datasets/folders/folder_names.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_unreadable(const fs::path& folder, const std::error_code& error) {
  fail(ExitCode::data, "folder '" + folder.string() + "' cannot be read: " + error.message() +
                           " (its images are needed); check its permissions");
}

/// The same for all paths that lead to one folder.
struct Identity {
  dev_t device;
  ino_t inode;
  bool operator==(const Identity&) const = default;
};

Identity identity_of(const fs::path& folder) {
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) {
    fail_unreadable(folder, std::error_code(errno, std::generic_category()));
  }
  return {facts.st_dev, facts.st_ino};
}

/// Files whose names fit, at any depth, and no images.
template <class Predicate>
bool holds_only(const FolderNode& node, Predicate fits) {
  return node.image_count == 0 &&
         std::ranges::all_of(
             node.unread,
             [&](const UnreadName& file) { return file.why == Unread::name && fits(file.name); }) &&
         std::ranges::all_of(node.folders,
                             [&](const FolderNode& below) { return holds_only(below, fits); });
}

/// What training, sweeps and TensorBoard leave behind; also a folder of nothing but such folders,
/// as `held_output` says.
bool is_output(const FolderNode& node, bool held_output) {
  if (!holds_only(node, may_be_output)) return false;
  const bool has_sign = std::ranges::any_of(
      node.unread, [](const UnreadName& file) { return is_output_file(file.name); });
  return has_sign || (held_output && node.unread.empty() && node.folders.empty());
}

/// Puts a file where it belongs. "._1.jpg" is what macOS writes beside 1.jpg: no image.
void add_file(FolderNode& node, std::string name, std::optional<Unread> flaw) {
  const bool image = is_image_file_name(name);
  if (name.starts_with('.')) {
    if (image && !name.starts_with("._")) node.unread.push_back({name, Unread::hidden});
  } else if (flaw) {
    node.unread.push_back({std::move(name), *flaw});
  } else if (image) {
    node.images.push_back(std::move(name));
  } else {
    node.unread.push_back({std::move(name), Unread::name});
  }
}

class Walk {
 public:
  explicit Walk(fs::path root) : root_(std::move(root)) {
    std::error_code ignored;  // a folder that cannot be found is an error when it is read
    fs::path above = fs::canonical(root_, ignored);
    while (above.has_relative_path()) {
      above = above.parent_path();
      above_.push_back(identity_of(above));
    }
  }

  FolderNode read(const fs::path& folder, std::string name, bool through_link) {
    FolderNode node{std::move(name), {}, {}, {}, 0};
    above_.push_back(identity_of(folder));
    if (through_link) count_linked();
    bool held_output = false;
    for (const auto& [child, linked] : read_names(folder, node, through_link)) {
      FolderNode below = read(folder / child, child, through_link || linked);
      if (is_output(below, held_output_)) {
        held_output = true;
      } else {
        node.image_count += below.image_count;
        node.folders.push_back(std::move(below));
      }
    }
    above_.pop_back();
    held_output_ = held_output;
    return node;
  }

 private:
  using Names = std::vector<std::pair<std::string, bool>>;  ///< folders, and whether by a link

  /// Files go into the node; folders are returned, sorted.
  Names read_names(const fs::path& folder, FolderNode& node, bool through_link) {
    Names folders;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; entry != end; entry.increment(error)) {
      if (error) break;
      add(*entry, node, folders, through_link);
    }
    if (error) fail_unreadable(folder, error);
    std::ranges::sort(folders);
    std::ranges::sort(node.images);
    std::ranges::sort(node.unread, {}, &UnreadName::name);
    node.image_count = node.images.size();
    images_ += node.images.size();
    if (images_ > kMaxFiles) {
      fail(ExitCode::data, "'" + root_.string() + "' holds more than " + std::to_string(kMaxFiles) +
                               " images (indices have 32 bits); split the data set");
    }
    return folders;
  }

  void add(const fs::directory_entry& entry, FolderNode& node, Names& folders,
           bool through_link) const {
    std::string name = entry.path().filename().string();
    std::error_code error;
    const bool linked = entry.is_symlink(error);
    const auto kind = entry.status(error).type();  // the kind of what a link leads to
    if (kind == fs::file_type::directory) {
      if (is_system_folder(name)) return;
      if ((linked || through_link) && leads_back(entry.path())) {
        node.unread.push_back({std::move(name), Unread::back_link});
      } else {
        folders.emplace_back(std::move(name), linked);
      }
      return;
    }
    std::optional<Unread> flaw;
    if (kind != fs::file_type::regular) {
      const bool broken = linked && !fs::exists(entry.path(), error);
      flaw = broken ? Unread::broken_link : Unread::no_file;
    }
    add_file(node, std::move(name), flaw);
  }

  bool leads_back(const fs::path& folder) const {
    return std::ranges::find(above_, identity_of(folder)) != above_.end();
  }

  /// A few folders whose links lead to each other can be reached by endlessly many paths.
  void count_linked() {
    constexpr std::size_t kMost = 1'000'000;
    if (++linked_ <= kMost) return;
    fail(
        ExitCode::data,
        fmt::format("links in '{}' lead to more than {} folders (they seem to lead to each other); "
                    "remove links, or name the images in a list file",
                    root_.string(), with_commas(kMost)));
  }

  fs::path root_;
  std::vector<Identity> above_;  ///< from the root of the file system to the folder being read
  std::size_t images_ = 0, linked_ = 0;
  bool held_output_ = false;  ///< the folder that read() returned last did
};

/// Entries of an archive as the folders that they lie in.
class EntryWalk {
 public:
  /// `before`: bytes of the folder's own path, with which all the entries begin.
  FolderNode read(std::span<const TreeEntry> entries, std::size_t before, std::string name) {
    FolderNode node{std::move(name), {}, {}, {}, 0};
    bool held_output = false;
    while (!entries.empty()) {
      const std::string_view path = entries.front().path;
      const std::size_t end = path.find('/', before);
      if (end == std::string_view::npos) {
        const std::string_view file = path.substr(before);  // none in the folder's own entry
        if (!file.empty()) add_file(node, std::string(file), entries.front().flaw);
        entries = entries.subspan(1);
        continue;
      }
      const auto behind = std::ranges::partition_point(entries, [&](const TreeEntry& entry) {
        return entry.path.starts_with(path.substr(0, end + 1));
      });
      const std::span<const TreeEntry> inner(entries.begin(), behind);
      entries = {behind, entries.end()};
      std::string child(path.substr(before, end - before));
      if (is_system_folder(child)) continue;
      FolderNode below = read(inner, end + 1, std::move(child));
      if (is_output(below, held_output_)) {
        held_output = true;
      } else {
        node.image_count += below.image_count;
        node.folders.push_back(std::move(below));
      }
    }
    std::ranges::sort(node.folders, {}, &FolderNode::name);  // 'a-b/' is before 'a/', 'a-b' is not
    node.image_count += node.images.size();
    held_output_ = held_output;
    return node;
  }

 private:
  bool held_output_ = false;  ///< the folder that read() returned last did
};

}  // namespace

const data::UnreadReason& unread_reason(const UnreadName& file) {
  using Reason = data::UnreadReason;
  static constexpr Reason kHidden{"hidden", "hidden images"};
  static constexpr Reason kBrokenLink{"broken link", "broken links", true};
  static constexpr Reason kBackLink{"link to a folder above it", "links to folders above them"};
  static constexpr Reason kArchivedLink{"link in an archive", "links in archives", true};
  static constexpr Reason kNoFile{"no file", "devices or sockets"};
  static constexpr Reason kNoLabel{"no label", "images without a label"};
  static constexpr Reason kLoose{"beside the class folders", "images beside the class folders"};
  static constexpr Reason kUnused{"in a folder that is not used",
                                  "images in folders that are not used"};
  switch (file.why) {
    case Unread::name:
      break;
    case Unread::hidden:
      return kHidden;
    case Unread::broken_link:
      return kBrokenLink;
    case Unread::back_link:
      return kBackLink;
    case Unread::archived_link:
      return kArchivedLink;
    case Unread::no_file:
      return kNoFile;
    case Unread::no_label:
      return kNoLabel;
    case Unread::loose:
      return kLoose;
    case Unread::unused:
      return kUnused;
  }
  return kind_of_name(file.name).reason;
}

std::vector<const FolderNode*> FolderNode::folders_with_images() const {
  std::vector<const FolderNode*> found;
  for (const FolderNode& folder : folders) {
    if (folder.image_count > 0) found.push_back(&folder);
  }
  return found;
}

FolderNode read_tree(const fs::path& folder) { return Walk(folder).read(folder, "", false); }

FolderNode tree_of(std::span<const TreeEntry> entries) { return EntryWalk().read(entries, 0, ""); }

bool holds_no_file(const FolderNode& node) {
  return node.image_count == 0 && node.unread.empty() &&
         std::ranges::all_of(node.folders, holds_no_file);
}

std::string unread_content(const FolderNode& node) {
  std::vector<data::UnreadFile> files;
  add_unread(node, "", false, files);
  const std::string kinds = data::unread_by_kind(files);
  return kinds.empty() ? "nothing" : kinds;
}

void add_unread(const FolderNode& node, const std::string& path, bool images_too,
                std::vector<data::UnreadFile>& files) {
  const auto below = [&](const std::string& name) {
    return path.empty() ? name : fmt::format("{}/{}", path, name);
  };
  for (const UnreadName& file : node.unread) {
    files.push_back({below(file.name), &unread_reason(file)});
  }
  if (images_too) {
    for (const std::string& name : node.images) {
      files.push_back({below(name), &unread_reason(Unread::unused)});
    }
  }
  for (const FolderNode& folder : node.folders) {
    add_unread(folder, below(folder.name), images_too, files);
  }
}

}  // namespace cputrain::datasets
