// Data sets whose images are files in folders.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "data/classes/alike_names.h"
#include "datasets/decode/limits.h"
#include "datasets/folders/empty_classes.h"
#include "datasets/folders/file_dataset.h"
#include "datasets/folders/folder.h"
#include "datasets/folders/folder_layout.h"
#include "datasets/folders/folder_names.h"
#include "datasets/folders/found.h"
#include "datasets/formats/pickles.h"
#include "datasets/lists/annotation_files.h"
#include "datasets/lists/list_file.h"

namespace cputrain::datasets {
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
                                 const std::vector<EmptyClass>& empty, bool archived) {
  if (const std::string pickle = find_pickle(path); !pickle.empty()) refuse_pickle(pickle);
  if (const std::string spec = spec_of(path); !spec.empty()) {
    fail(ExitCode::data, fmt::format("'{0}' holds the files of another form (there are no images "
                                     "in it); use --data {1}:{0}",
                                     path, spec));
  }
  if (const std::string spec = find_annotations(path); !spec.empty()) {
    fail(ExitCode::data, fmt::format("'{}' has no class folders, but annotation files lie there or "
                                     "beside it; use --data {}",
                                     path, spec));
  }
  const auto list = std::ranges::find_if(
      node.unread, [](const UnreadName& file) { return is_list_name(file.name); });
  if (!node.images.empty() && list != node.unread.end()) {
    fail(ExitCode::data, fmt::format("'{0}' holds {1} in no class folders, and beside them "
                                     "'{2}'; if that says their classes, {3}use --data {0}/{2}",
                                     path, with_commas(node.images.size(), "image"), list->name,
                                     archived ? "unpack the archive and " : ""));
  }
  if (!node.images.empty()) {
    fail(ExitCode::data,
         fmt::format("'{}' holds {}, but nothing says of which class (first: '{}'); put "
                     "each class into a folder of its own, name files as cat.1.jpg, or write a "
                     "list (.csv) of paths and classes",
                     path, with_commas(node.images.size(), "image"), node.images.front()));
  }
  const std::string folders = empty.empty() ? "" : " in " + counted(empty.size(), "folder");
  fail(ExitCode::data,
       fmt::format(
           "no images in '{}', which holds {}{} (a folder of class folders is read, or names "
           "like cat.1.jpg; {}); check the path",
           path, unread_content(node), folders, image_endings()));
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
  FolderFinder(const data::DataRequest& request, std::string name, FolderNode tree, FilesIn in)
      : request_(request), path_(std::move(name)), tree_(std::move(tree)), in_(std::move(in)) {}

  Found find() {
    const FolderLayout layout = find_layout(tree_, path_);
    const PartFolder train = layout.train.value_or(PartFolder{"", &tree_});
    FolderListing listing = list(train, layout.flat);
    const auto learnt = listing.files.classes();
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
    set_files(found_, in_.path, std::move(files_), united(learnt, empty_), request_.exif,
              in_.archive);
    return std::move(found_);
  }

 private:
  std::string whole(const std::string& part) const {
    return part.empty() ? path_ : path_ + "/" + part;
  }

  FolderListing list(const PartFolder& part, bool flat) const {
    if (part.node->folders.size() > kMaxClasses) {
      fail(ExitCode::data,
           fmt::format("'{}' holds more than {} class folders (is it a folder of class folders?); "
                       "name the folder above the classes",
                       whole(part.path), kMaxClasses));
    }
    FolderListing listing = list_folder(*part.node, part.path, flat);
    if (listing.files.empty()) {
      fail_no_images(whole(part.path), *part.node, listing.empty_classes, in_.archive != nullptr);
    }
    return listing;
  }

  /// Whether a folder without images has the name of a known class, or one that looks like it.
  bool is_known_folder(const std::string& name, const std::vector<std::string>& learnt) const {
    const std::vector<std::string> known = united(learnt, empty_);
    return data::match_names(std::span(&name, 1), known).place.front().has_value();
  }

  void take(FolderListing&& listing, std::vector<std::uint32_t>& samples) {
    samples = indices(files_.size(), files_.size() + listing.files.size());
    files_.add(listing.files);
    std::ranges::move(listing.unread, std::back_inserter(found_.unread));
  }

  /// It may lack classes, whether it has folders for them or not.
  void add_validation(const PartFolder& part, const std::vector<std::string>& learnt) {
    FolderListing listing = list(part, false);
    const std::vector<std::string> known = united(learnt, empty_);
    take_alike_classes(listing.files, known, found_);
    if (const auto file = listing.files.first_beside(known)) {
      fail(ExitCode::data,
           fmt::format("'{}' is of class '{}', which has no training images (training knows: {}); "
                       "use the same class names in both parts",
                       fmt::format("{}/{}", path_, listing.files.path(*file)),
                       listing.files.label(*file), join(learnt, ", ")));
    }
    for (EmptyClass& one : listing.empty_classes) {
      if (!is_known_folder(one.name, learnt)) empty_.push_back(std::move(one));
    }
    take(std::move(listing), found_.validation);
    found_.validation_name = "its '" + part.path + "' folder";
  }

  /// Training does not need it: without the classes that are known it is only left out.
  void add_test(const PartFolder& part, const std::vector<std::string>& learnt) {
    FolderListing listing = list(part, false);
    const std::vector<std::string> known = united(learnt, empty_);
    take_alike_classes(listing.files, known, found_);
    if (const auto file = listing.files.first_beside(known)) {
      found_.warnings.push_back(
          fmt::format("'{}' is not used for testing: its class '{}' has no training images",
                      whole(part.path), listing.files.label(*file)));
      add_unread(*part.node, part.path, true, found_.unread);
      return;
    }
    for (const EmptyClass& one : listing.empty_classes) {
      if (is_known_folder(one.name, learnt)) continue;
      found_.warnings.push_back(
          fmt::format("'{}/{}' is not used for testing: no image can be read of it, and its class "
                      "has no training images",
                      whole(part.path), one.name));
    }
    take(std::move(listing), found_.test);
    found_.test_name = "its '" + part.path + "' folder";
  }

  /// Whatever lies beside the parts.
  void add_unread_beside(const FolderLayout& layout) {
    std::set<std::string> parts;
    for (const auto& part : {layout.train, layout.validation, layout.test}) {
      if (part) parts.insert(part->path);
    }
    add_unread_around(tree_, "", parts);
  }

  /// `node` is a folder above a part.
  void add_unread_around(const FolderNode& node, const std::string& above,
                         const std::set<std::string>& parts) {
    for (const UnreadName& file : node.unread) {
      found_.unread.push_back({above + file.name, &unread_reason(file)});
    }
    for (const std::string& name : node.images) {
      found_.unread.push_back({above + name, &unread_reason(Unread::unused)});
    }
    for (const FolderNode& folder : node.folders) {
      const std::string path = above + folder.name, inner = path + "/";
      if (parts.contains(path)) continue;
      const auto next = parts.lower_bound(inner);
      if (next != parts.end() && next->starts_with(inner)) {
        add_unread_around(folder, inner, parts);
      } else {
        add_unread(folder, path, true, found_.unread);
      }
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
    if (empty_.empty()) return;
    found_.warnings.push_back(
        request_.to_evaluate
            ? describe_empty_classes(empty_) + "; their folders are passed over"
            : check_empty_classes(empty_, request_.allow_empty_classes || request_.to_check));
    for (const EmptyClass& one : empty_) found_.empty_classes.push_back(one.name);
  }

  const data::DataRequest& request_;
  std::string path_;
  FolderNode tree_;
  FilesIn in_;
  ImageFiles files_;
  std::vector<EmptyClass> empty_;
  Found found_;
};

}  // namespace

std::vector<std::uint32_t> indices(std::size_t begin, std::size_t end) {
  std::vector<std::uint32_t> result(end - begin);
  std::iota(result.begin(), result.end(), static_cast<std::uint32_t>(begin));
  return result;
}

void take_alike_classes(ImageFiles& files, const std::vector<std::string>& known, Found& found) {
  const std::vector<std::string> names = files.classes();
  const data::NameMatch match = data::match_names(names, known);
  if (match.alike.empty()) return;
  std::map<std::string, std::string> taken;
  for (const std::size_t i : match.alike) taken[names[i]] = known[*match.place[i]];
  files.rename(taken);
  found.warnings.push_back(
      fmt::format("classes of a further part are taken for those of training, whose names look "
                  "alike: {}",
                  data::alike_text(match, names, known)));
}

void set_files(Found& found, std::string root, ImageFiles files, std::vector<std::string> classes,
               data::Exif exif, std::shared_ptr<const ArchiveFiles> archive) {
  FileData data = make_file_dataset(std::move(root), std::move(files), std::move(classes), exif,
                                    std::move(archive));
  found.dataset = std::move(data.dataset);
  if (!data.conflict.empty()) found.warnings.push_back(std::move(data.conflict));
}

Found find_files(const data::DataRequest& request, std::string name, FolderNode tree, FilesIn in) {
  return FolderFinder(request, std::move(name), std::move(tree), std::move(in)).find();
}

Found find_folder(const data::DataRequest& request) {
  return find_files(request, request.spec, read_tree(request.spec), {.path = request.spec});
}

}  // namespace cputrain::datasets
