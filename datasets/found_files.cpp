// Data sets whose pictures are files: folders, lists, COCO-like JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "datasets/empty_classes.h"
#include "datasets/file_dataset.h"
#include "datasets/folder.h"
#include "datasets/folder_layout.h"
#include "datasets/found.h"
#include "datasets/list_file.h"
#include "datasets/pickles.h"

namespace cputrain {
namespace {

namespace fs = std::filesystem;

/// The word before the colon with which --data reads what lies in this folder; empty for others.
std::string spec_of(const std::string& folder) {
  constexpr std::array<std::array<const char*, 2>, 6> kSigns{{{"data_batch_1.bin", "cifar10"},
                                                              {"test_batch.bin", "cifar10"},
                                                              {"cifar-10-batches-bin", "cifar10"},
                                                              {"fine_label_names.txt", "cifar100"},
                                                              {"cifar-100-binary", "cifar100"},
                                                              {"train2017.json", "inat"}}};
  std::error_code ignored;
  for (const auto& [name, spec] : kSigns) {
    if (fs::exists(folder + "/" + name, ignored)) return spec;
  }
  for (const char* name : {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"}) {
    if (fs::exists(folder + "/" + name, ignored)) return "idx";
  }
  return {};
}

[[noreturn]] void fail_no_images(const std::string& path, const FolderNode& node,
                                 const std::vector<EmptyClass>& empty) {
  if (const std::string pickle = find_pickle(path); !pickle.empty()) refuse_pickle(pickle);
  if (const std::string spec = spec_of(path); !spec.empty()) {
    fail(ExitCode::data, fmt::format("'{0}' holds the files of another form (there are no images "
                                     "in it); use --data {1}:{0}",
                                     path, spec));
  }
  const std::string folders =
      empty.empty() ? ""
                    : fmt::format(" in {} folder{}", empty.size(), empty.size() == 1 ? "" : "s");
  fail(ExitCode::data,
       fmt::format(
           "no images in '{}', which holds {}{} (a folder of class folders is read, or names "
           "like cat.1.jpg; {}); check the path",
           path, unread_content(node), folders, picture_endings()));
}

/// What else could be meant where a folder gives one class.
std::string remedy_of_one_class(const std::string& path, const FolderNode& node,
                                const std::vector<EmptyClass>& empty) {
  if (!empty.empty()) {
    return fmt::format("no image can be read of '{}' ({})", empty.front().name, empty.front().why);
  }
  const auto folders = node.folders_with_images();
  if (folders.size() == 1 && folders.front()->folders_with_images().size() > 1) {
    return fmt::format("if the folders in '{0}/{1}' are the classes, name it: --data {0}/{1}", path,
                       folders.front()->name);
  }
  return "put each class into a folder of its own";
}

std::vector<std::string> united(const std::vector<std::string>& classes,
                                const std::vector<EmptyClass>& empty) {
  std::set<std::string> names(classes.begin(), classes.end());
  for (const EmptyClass& one : empty) names.insert(one.name);
  return {names.begin(), names.end()};
}

/// Files of a folder as they are listed, with the classes that they make.
class FolderFinder {
 public:
  FolderFinder(std::string path, bool allow_empty)
      : path_(std::move(path)), allow_empty_(allow_empty), tree_(read_tree(path_)) {}

  Found find() {
    const FolderLayout layout = find_layout(tree_, path_);
    const PartFolder train = layout.train.value_or(PartFolder{"", &tree_});
    FolderListing listing = list(train, layout.flat);
    const auto learnt = classes_of(listing.files);
    found_.one_class_remedy =
        remedy_of_one_class(whole(train.path), *train.node, listing.empty_classes);
    empty_ = std::move(listing.empty_classes);
    found_.train = indices(0, listing.files.size());
    files_ = std::move(listing.files);
    found_.unread = std::move(listing.unread);
    if (layout.validation) add_validation(*layout.validation, learnt);
    if (layout.test) add_test(*layout.test, learnt);
    if (layout.train) add_unread_beside(layout);
    tell_left_out(layout.left_out);
    keep_empty_classes();
    set_files(found_, path_, std::move(files_), united(learnt, empty_));
    return std::move(found_);
  }

 private:
  std::string whole(const std::string& part) const {
    return part.empty() ? path_ : path_ + "/" + part;
  }

  FolderListing list(const PartFolder& part, bool flat) const {
    FolderListing listing = list_folder(*part.node, part.path, flat);
    if (listing.files.empty()) fail_no_images(whole(part.path), *part.node, listing.empty_classes);
    return listing;
  }

  /// A part that is not learnt from may lack classes, whether it has folders for them or not.
  void take(FolderListing&& listing, const std::vector<std::string>& learnt,
            std::vector<std::uint32_t>& samples) {
    samples = indices(files_.size(), files_.size() + listing.files.size());
    std::ranges::move(listing.files, std::back_inserter(files_));
    std::ranges::move(listing.unread, std::back_inserter(found_.unread));
    for (EmptyClass& one : listing.empty_classes) {
      const bool known = std::ranges::binary_search(learnt, one.name) ||
                         std::ranges::find(empty_, one.name, &EmptyClass::name) != empty_.end();
      if (!known) empty_.push_back(std::move(one));
    }
  }

  /// The first file of a class without training images; nothing where all are known.
  const PictureFile* unknown(const FolderListing& listing,
                             const std::vector<std::string>& learnt) const {
    const auto file = std::ranges::find_if(listing.files, [&](const PictureFile& one) {
      const bool empty = std::ranges::find(empty_, one.label, &EmptyClass::name) != empty_.end();
      return !std::ranges::binary_search(learnt, one.label) && !empty;
    });
    return file == listing.files.end() ? nullptr : &*file;
  }

  void add_validation(const PartFolder& part, const std::vector<std::string>& learnt) {
    FolderListing listing = list(part, false);
    if (const PictureFile* file = unknown(listing, learnt)) {
      fail(ExitCode::data,
           fmt::format("'{}' is of class '{}', which has no training images (training knows: {}); "
                       "use the same class names in both parts",
                       path_ + "/" + file->path, file->label, join(learnt, ", ")));
    }
    take(std::move(listing), learnt, found_.validation);
    found_.validation_name = "its '" + part.path + "' folder";
  }

  /// Training does not need it: without the classes that are known it is only left out.
  void add_test(const PartFolder& part, const std::vector<std::string>& learnt) {
    FolderListing listing = list(part, false);
    if (const PictureFile* file = unknown(listing, learnt)) {
      found_.warnings.push_back(
          fmt::format("'{}' is not used for testing: its class '{}' has no training images",
                      whole(part.path), file->label));
      add_unread(*part.node, part.path, true, found_.unread);
      return;
    }
    take(std::move(listing), learnt, found_.test);
    found_.test_name = "its '" + part.path + "' folder";
  }

  /// Whatever lies beside the parts.
  void add_unread_beside(const FolderLayout& layout) {
    std::set<std::string> parts;
    for (const auto& part : {layout.train, layout.validation, layout.test}) {
      if (part) parts.insert(part->path.substr(0, part->path.find('/')));
    }
    for (const UnreadName& file : tree_.unread) {
      found_.unread.push_back({file.name, unread_reason(file.why)});
    }
    for (const std::string& name : tree_.images) {
      found_.unread.push_back({name, unread_reason(Unread::unused)});
    }
    for (const FolderNode& folder : tree_.folders) {
      if (!parts.contains(folder.name)) add_unread(folder, folder.name, true, found_.unread);
    }
  }

  void tell_left_out(const std::vector<LeftOut>& left_out) {
    std::vector<std::string> texts;
    for (const LeftOut& one : left_out) {
      texts.push_back(fmt::format("'{}' ({})", one.folder.path, one.why));
    }
    if (!texts.empty()) found_.remark = fmt::format("Not used: {}.", join(texts, ", "));
  }

  void keep_empty_classes() {
    const std::string warning = check_empty_classes(empty_, allow_empty_);
    if (!warning.empty()) found_.warnings.push_back(warning);
    for (const EmptyClass& one : empty_) found_.empty_classes.push_back(one.name);
  }

  std::string path_;
  bool allow_empty_;
  FolderNode tree_;
  std::vector<PictureFile> files_;
  std::vector<EmptyClass> empty_;
  Found found_;
};

}  // namespace

std::vector<std::uint32_t> indices(std::size_t begin, std::size_t end) {
  std::vector<std::uint32_t> result(end - begin);
  std::iota(result.begin(), result.end(), static_cast<std::uint32_t>(begin));
  return result;
}

std::vector<std::string> classes_of(const std::vector<PictureFile>& files) {
  std::set<std::string> names;
  for (const PictureFile& file : files) names.insert(file.label);
  return {names.begin(), names.end()};
}

void set_files(Found& found, std::string root, std::vector<PictureFile> files,
               std::vector<std::string> classes) {
  FileData data = make_file_dataset(std::move(root), std::move(files), std::move(classes));
  found.dataset = std::move(data.dataset);
  if (!data.conflict.empty()) found.warnings.push_back(std::move(data.conflict));
}

Found find_folder(const std::string& path, bool allow_empty_classes) {
  return FolderFinder(path, allow_empty_classes).find();
}

Found find_list(const std::string& path) {
  std::vector<PictureFile> files = read_list(path);
  if (files.empty()) {
    fail(ExitCode::data, "list file '" + path +
                             "' names no images (nothing to train on); its lines "
                             "are a path, a tab and a class name");
  }
  const auto classes = classes_of(files);
  const std::string folder = fs::path(path).parent_path().string();
  Found found;
  found.one_class_remedy = "name images of another class, too";
  found.train = indices(0, files.size());
  set_files(found, folder.empty() ? "." : folder, std::move(files), classes);
  return found;
}

}  // namespace cputrain
