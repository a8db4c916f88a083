#include "datasets/folders/folder_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"
#include "datasets/folders/class_folders.h"
#include "datasets/folders/folder_names.h"
#include "datasets/lists/annotation_files.h"

namespace cputrain::datasets {
namespace {

/// A folder with images beside others.
struct Child {
  PartFolder folder;
  Part part = Part::none;
  bool holds_classes = false;  ///< class folders
  bool labelled = false;       ///< these, or labels in names
};

/// What a part is packed into: `seg_train/seg_train`, `asl_train/asl_train`,
/// `train/images/{cat,dog}`.
PartFolder unwrapped(const FolderNode& node, const PartName& outer) {
  PartFolder folder{node.name, &node};
  for (const FolderNode* only = only_folder(node); only; only = only_folder(*only)) {
    const PartName name = part_name(only->name);
    const bool again = name.part == outer.part &&
                       (name.alone || lower_case(only->name) == lower_case(folder.node->name));
    if (!again && (!is_data_name(only->name) || holds_images(*only))) break;
    folder = {folder.path + "/" + only->name, only};
  }
  return folder;
}

/// Other words in a name ("chest_train") count only for folders that hold class folders:
/// `test_tube` with images is a class.
Child child_of(const FolderNode& node) {
  const PartName name = part_name(node.name);
  Child child{{node.name, &node}, Part::none, !holds_images(node), false};
  if (name.part == Part::none) return child;
  const PartFolder inner = unwrapped(node, name);
  child.holds_classes = !holds_images(*inner.node);
  if (child.holds_classes || name.alone) {
    child.part = name.part;
    child.folder = inner;
  }
  child.holds_classes |= inner.node->folders_with_images().size() > 1;
  const std::size_t least = child.part == Part::train ? 2 : 1;
  child.labelled = child.holds_classes || has_labels_in_names(*inner.node, least);
  return child;
}

std::string quoted(const std::vector<const Child*>& children) {
  std::vector<std::string> names;
  for (const Child* child : children) names.push_back(child->folder.path);
  return datasets::quoted(names);
}

/// Whether `train`, `valid` or the like can only be a class: `train` among cars and ships, `valid`
/// beside `invalid`.
bool is_class_by_others(const std::string& name, const std::vector<const Child*>& others) {
  const auto name_of = [](const Child* child) { return child->folder.node->name; };
  if (name == "valid") {
    return std::ranges::any_of(
        others, [&](const Child* child) { return lower_case(name_of(child)) == "invalid"; });
  }
  return name == "train" && others.size() >= 2 &&
         std::ranges::none_of(others, [&](const Child* child) {
           return part_name(name_of(child)).part != Part::none || names_data(name_of(child));
         });
}

class Decision {
 public:
  Decision(const FolderNode& node, std::string path) : node_(node), path_(std::move(path)) {
    for (const FolderNode* folder : node.folders_with_images()) {
      children_.push_back(child_of(*folder));
    }
  }

  FolderLayout layout() {
    const auto trains = those([](const Child& c) { return c.part == Part::train && c.labelled; });
    if (trains.empty()) return without_parts();
    refuse_two(trains, "training");
    layout_.train = trains.front()->folder;
    for (const Child& child : children_) {
      if (&child != trains.front()) place(child, *trains.front());
    }
    choose_validation();
    look_at_empty_parts();
    leave_out_empty_parts(*layout_.train->node, layout_.train->path + "/");
    check_class_folders(*layout_.train->node, below(layout_.train->path));
    return std::move(layout_);
  }

 private:
  template <class Predicate>
  std::vector<const Child*> those(Predicate predicate) const {
    std::vector<const Child*> found;
    for (const Child& child : children_) {
      if (predicate(child)) found.push_back(&child);
    }
    return found;
  }

  std::string below(const std::string& name) const { return path_ + "/" + name; }

  [[noreturn]] void refuse(const std::string& what) const {
    fail(ExitCode::data, fmt::format("'{}': {}", path_, what));
  }

  void refuse_two(const std::vector<const Child*>& claims, const char* use) const {
    if (claims.size() < 2) return;
    refuse(
        fmt::format("the folders {} all claim to be the part for {} (which is meant cannot be "
                    "told); rename or move all but one",
                    quoted(claims), use));
  }

  /// Beside class folders.
  void leave_out_empty_parts(const FolderNode& node, const std::string& above) {
    for (const FolderNode& folder : node.folders) {
      if (is_empty_part(folder)) leave_out({above + folder.name, &folder}, "it holds no images");
    }
  }

  void leave_out(const PartFolder& folder, const char* why) {
    layout_.left_out.push_back({folder, why});
  }

  FolderLayout without_parts() {
    refuse_parts_without_training();
    const auto named = those([](const Child& c) { return c.part != Part::none; });
    const auto plain = those([](const Child& c) { return c.part == Part::none; });
    const bool flat = plain.empty() && has_labels_in_names(node_, named.empty() ? 1 : 2);
    if (flat) {
      layout_.flat = true;
      for (const Child* child : named) leave_out(child->folder, "its images have no labels");
      return std::move(layout_);
    }
    if (!named.empty() && plain.empty()) {
      const std::string spec = find_annotations(path_);
      refuse(
          fmt::format("the images in {} have no labels (they lie in no class folders and are not "
                      "named like cat.1.jpg); {}",
                      quoted(named),
                      spec.empty() ? "put each class into a folder of its own, in each part"
                                   : "annotation files lie beside them: use --data " + spec));
    }
    refuse_class_or_part(named, plain);
    leave_out_empty_parts(node_, "");
    check_class_folders(node_, path_);
    return std::move(layout_);
  }

  void refuse_parts_without_training() const {
    const auto parts =
        those([](const Child& c) { return c.part != Part::none && c.holds_classes; });
    if (parts.empty()) return;
    refuse(
        fmt::format("{} hold{} class folders and can only be part{} of a split, but no folder is "
                    "named as the part for training (trained as {}, the network would learn the "
                    "names of folders); add it as 'train', or name one folder: --data {}",
                    quoted(parts), parts.size() == 1 ? "s" : "", parts.size() == 1 ? "" : "s",
                    parts.size() == 1 ? "a class" : "classes", below(parts.front()->folder.path)));
  }

  /// `test` beside `cat` and `dog` most likely is no class.
  void refuse_class_or_part(const std::vector<const Child*>& named,
                            const std::vector<const Child*>& plain) const {
    if (named.empty()) return;
    const std::string name = lower_case(named.front()->folder.path);
    if (named.size() == 1 && is_class_by_others(name, plain)) return;
    refuse(fmt::format(
        "{} may be meant as {} or as part{} of a split (beside {}; images in a part "
        "need class folders); rename {}, or move {} away",
        quoted(named), named.size() == 1 ? "a class" : "classes", named.size() == 1 ? "" : "s",
        quoted(plain), named.size() == 1 ? "it" : "them", named.size() == 1 ? "it" : "them"));
  }

  /// `test-multiple_fruits/*.jpg` beside `Training` and `Test`.
  static bool is_unlabelled_rest(const Child& child) {
    const Part part = part_name(child.folder.node->name).part;
    const bool is_rest = part == Part::test || part == Part::evaluation || part == Part::prediction;
    return is_rest && !child.labelled;
  }

  /// One of the folders beside the part for training.
  void place(const Child& child, const Child& train) {
    switch (child.part) {
      case Part::none:
        if (is_unlabelled_rest(child)) {
          return leave_out(child.folder, "its images have no labels");
        }
        refuse(
            fmt::format("'{}' lies beside '{}', which is the part for training ('{}' can be "
                        "neither a class nor, by its name, a part); move it away, or call the "
                        "parts train, val and test",
                        child.folder.path, train.folder.path, child.folder.path));
      case Part::train:
        return refuse_two({&train, &child}, "training");
      case Part::prediction:
        return leave_out(child.folder, "it is for prediction");
      case Part::validation:
        if (!child.labelled) {
          refuse(
              fmt::format("the images in '{}' have no labels (they cannot validate); put each "
                          "class into a folder of its own there, too",
                          child.folder.path));
        }
        break;
      case Part::evaluation:
      case Part::test:
        if (!child.labelled) return leave_out(child.folder, "its images have no labels");
        break;
    }
    claims_[child.part].push_back(&child);
  }

  void choose_validation() {
    refuse_two(claims_[Part::validation], "validation");
    refuse_two(claims_[Part::evaluation], "evaluation");
    refuse_two(claims_[Part::test], "testing");
    // "eval" is either; "test" validates where nothing else does.
    std::vector<const Child*> parts;
    for (const Part part : {Part::validation, Part::evaluation, Part::test}) {
      if (!claims_[part].empty()) parts.push_back(claims_[part].front());
    }
    if (parts.size() == 3) refuse_two({parts[1], parts[2]}, "testing");
    if (!parts.empty()) layout_.validation = parts[0]->folder;
    if (parts.size() == 2) layout_.test = parts[1]->folder;
  }

  void look_at_empty_parts() {
    for (const FolderNode& folder : node_.folders) {
      const PartName name = part_name(folder.name);
      if (folder.image_count > 0 || !name.alone) continue;
      const bool empty = folder.unread.empty() || name.part == Part::validation;
      const bool missed =
          !layout_.validation && empty && name.part != Part::train && name.part != Part::prediction;
      if (missed) {
        fail(ExitCode::data,
             fmt::format("no images in '{}' (it is the part for validation; it holds {}); add "
                         "images, or remove the folder so that a part of the training images "
                         "validates",
                         below(folder.name), unread_content(folder)));
      }
      leave_out({folder.name, &folder}, "it holds no images");
    }
  }

  const FolderNode& node_;
  std::string path_;
  std::vector<Child> children_;
  std::map<Part, std::vector<const Child*>> claims_;
  FolderLayout layout_;
};

}  // namespace

bool is_empty_part(const FolderNode& node) {
  return part_name(node.name).alone && holds_no_file(node);
}

bool has_labels_in_names(const FolderNode& node, std::size_t least) {
  std::set<std::string> labels;
  for (const std::string& name : node.images) {
    std::string label = label_in_name(name);
    if (!label.empty()) labels.insert(std::move(label));
    if (labels.size() >= least) return true;
  }
  return false;
}

FolderLayout find_layout(const FolderNode& node, const std::string& path) {
  return Decision(node, path).layout();
}

}  // namespace cputrain::datasets
