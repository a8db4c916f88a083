#include "datasets/folders/class_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "datasets/folders/folder_names.h"

namespace cputrain::datasets {
namespace {

/// Names of folders by their lower case: disks of other systems keep no case.
using Spellings = std::map<std::string, std::string>;

/// The first folder below that does not hold one folder alone.
const FolderNode& branching(const FolderNode& node) {
  const FolderNode* inner = &node;
  while (const FolderNode* only = only_folder(*inner)) inner = only;
  return *inner;
}

Spellings inner_folders(const FolderNode& node) {
  Spellings names;
  for (const FolderNode* folder : branching(node).folders_with_images()) {
    names.emplace(lower_case(folder->name), folder->name);
  }
  return names;
}

/// Names of all folders with images below, at any depth.
void add_folders_below(const FolderNode& node, Spellings& names) {
  for (const FolderNode* folder : node.folders_with_images()) {
    names.emplace(lower_case(folder->name), folder->name);
    add_folders_below(*folder, names);
  }
}

/// The rules by which folders side by side cannot be classes. Each looks at what a class folder
/// holds or at what distinguishes its name from the others.
class Rules {
 public:
  Rules(const FolderNode& node, const std::string& path)
      : folders_(node.folders_with_images()), path_(path) {}

  void check() const {
    refuse_parts();
    refuse_same_folders();
    refuse_parts_in_classes();
    refuse_copies();
    refuse_pieces();
    refuse_parts_of_classes();
    refuse_images_beside_others();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail(ExitCode::data, fmt::format("'{}': {}", path_, what));
  }

  void refuse_parts() const {
    for (const FolderNode* folder : folders_) {
      if (holds_images(*folder) || !part_name(folder->name).alone) continue;
      refuse(
          fmt::format("'{}' holds folders and is named like a part of a split, which it cannot "
                      "be there (it would be trained as a class); name the folder that holds "
                      "the parts, or rename it",
                      folder->name));
    }
  }

  /// Classes have folders of their own in them now and then, but not the same ones: `amazon` and
  /// `webcam`, `fold1` and `fold2`, or `cat/{train,val}` beside `dog/{train,val}` are no classes.
  void refuse_same_folders() const {
    std::map<std::string, std::string> owners;
    for (const FolderNode* folder : folders_) {
      if (!folder->images.empty()) continue;
      std::map<std::string, std::vector<std::string>> shared;
      for (const auto& [inner, spelling] : inner_folders(*folder)) {
        const auto [owner, is_new] = owners.emplace(inner, folder->name);
        if (!is_new) shared[owner->second].push_back(spelling);
      }
      for (const auto& [other, names] : shared) {
        if (names.size() < 2) continue;
        refuse(
            fmt::format("'{1}' and '{2}' hold the same folders, {3} (they look like copies or "
                        "parts of one data set and not like two classes); name one of them (--data "
                        "{0}/{2}), call the parts train, val and test, or name the images in a "
                        "list file",
                        path_, other, folder->name, quoted(names)));
      }
    }
  }

  /// `split/{train,val}` beside the classes that were divided.
  void refuse_parts_in_classes() const {
    for (const FolderNode* folder : folders_) {
      std::set<Part> parts;
      std::vector<std::string> names;
      for (const FolderNode* inner : branching(*folder).folders_with_images()) {
        const PartName name = part_name(inner->name);
        if (name.part == Part::none || (!name.alone && holds_images(*inner))) continue;
        parts.insert(name.part);
        names.push_back(inner->name);
      }
      if (parts.size() < 2) continue;
      refuse(
          fmt::format("'{1}' holds the parts of a split, {2}, and lies where classes lie (it would "
                      "be trained as a class); name it alone (--data {0}/{1}), or move it away",
                      path_, folder->name, quoted(names)));
    }
  }

  /// `pets/{cat,dog}` beside `cat` and `dog`, as archives hold it.
  void refuse_copies() const {
    Spellings classes;
    for (const FolderNode* folder : folders_) {
      classes.emplace(lower_case(folder->name), folder->name);
    }
    for (const FolderNode* folder : folders_) {
      Spellings inner;
      add_folders_below(*folder, inner);
      for (const auto& [name, spelling] : inner) {
        const auto same = classes.find(name);
        if (same == classes.end() || same->second == folder->name) continue;
        refuse(
            fmt::format("'{0}' holds a folder '{1}' and lies beside '{2}' (it looks like a copy of "
                        "the data and would be trained as a class of its own); move '{0}' away, or "
                        "rename its folders",
                        folder->name, spelling, same->second));
      }
    }
  }

  /// `images_001` and `images_002`, `fold1` and `fold2`, `HAM10000_images_part_1` and `_2`.
  void refuse_pieces() const {
    std::map<std::string, std::vector<std::string>> groups;
    for (const FolderNode* folder : folders_) {
      if (names_data(folder->name)) {
        groups[without_numbers(folder->name)].push_back(folder->name);
      }
    }
    for (const auto& [name, pieces] : groups) {
      if (pieces.size() < 2) continue;
      refuse(
          fmt::format("{} look like pieces of one set (their names differ by numbers alone and "
                      "say nothing of what the images show); put each class into a folder of its "
                      "own, or name the images in a list file",
                      quoted(pieces)));
    }
  }

  /// `train_cat` and `val_cat`; `test_tube` beside `train_station` are classes.
  void refuse_parts_of_classes() const {
    std::map<std::string, std::string> first;
    for (const FolderNode* folder : folders_) {
      const std::string rest = without_part_words(folder->name);
      if (rest.empty()) continue;
      const auto [other, is_new] = first.emplace(rest, folder->name);
      const bool none = part_name(folder->name).part == part_name(other->second).part;
      if (is_new || none) continue;
      refuse(
          fmt::format("'{}' and '{}' differ by the name of a part of a split alone (they look like "
                      "one class, divided, and would be trained as two); put the class folders of "
                      "each part into a folder, train, val or test, or rename one",
                      other->second, folder->name));
    }
  }

  /// `images` beside `masks`.
  void refuse_images_beside_others() const {
    if (folders_.size() < 2) return;
    for (const FolderNode* folder : folders_) {
      if (!is_image_name(folder->name)) continue;
      std::vector<std::string> others;
      for (const FolderNode* other : folders_) {
        if (other != folder) others.push_back(other->name);
      }
      refuse(
          fmt::format("'{}' lies beside {} (its name says that it holds images and not what they "
                      "show, so that it is most likely no class); put each class into a folder of "
                      "its own, or rename it",
                      folder->name, quoted(others)));
    }
  }

  std::vector<const FolderNode*> folders_;
  const std::string& path_;
};

}  // namespace

const FolderNode* only_folder(const FolderNode& node) {
  const auto below = node.folders_with_images();
  return node.images.empty() && below.size() == 1 ? below.front() : nullptr;
}

bool holds_images(const FolderNode& node) {
  if (!node.images.empty()) return true;
  const FolderNode* only = only_folder(node);
  return only && is_data_name(only->name) && holds_images(*only);
}

std::string quoted(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 6;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(kShown, names.size()));
  return "'" + join(std::vector<std::string>(names.begin(), names.begin() + shown), "', '") +
         (names.size() > kShown ? "', ..." : "'");
}

void check_class_folders(const FolderNode& node, const std::string& path) {
  Rules(node, path).check();
}

}  // namespace cputrain::datasets
