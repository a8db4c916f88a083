// Data sets whose pictures are files: folders, lists, COCO-like JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "datasets/file_dataset.h"
#include "datasets/folder.h"
#include "datasets/found.h"
#include "datasets/list_file.h"
#include "datasets/pickles.h"

namespace cputrain {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> classes_of(const std::vector<PictureFile>& files) {
  std::set<std::string> names;
  for (const PictureFile& file : files) names.insert(file.label);
  return {names.begin(), names.end()};
}

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

[[noreturn]] void fail_no_images(const std::string& path, const FolderListing& listing) {
  if (const std::string pickle = find_pickle(path); !pickle.empty()) refuse_pickle(pickle);
  if (const std::string spec = spec_of(path); !spec.empty()) {
    fail(ExitCode::data, fmt::format("'{0}' holds the files of another form (there are no pictures "
                                     "in it); use --data {1}:{0}",
                                     path, spec));
  }
  std::string seen;
  if (listing.ignored > 0) seen += fmt::format(", {} other files", listing.ignored);
  if (listing.links > 0) seen += fmt::format(", {} links, which are not followed", listing.links);
  fail(ExitCode::data,
       fmt::format("no images in '{}'{} (a folder of class folders is read, or names like "
                   "cat.1.jpg; .bmp .gif .jpeg .jpg .png); check the path",
                   path, seen));
}

/// A validation part may lack classes but must not have others.
void check_same_classes(const std::string& path, const std::vector<std::string>& train,
                        const std::vector<PictureFile>& validation) {
  for (const PictureFile& file : validation) {
    if (!std::ranges::binary_search(train, file.label)) {
      fail(ExitCode::data,
           fmt::format("'{}' is of class '{}', which has no training images (training knows: {}); "
                       "use the same class names in both parts",
                       path + "/" + file.path, file.label, join(train, ", ")));
    }
  }
}

void append_part(const std::string& part, std::vector<PictureFile> files,
                 std::vector<PictureFile>& all) {
  for (PictureFile& file : files) {
    all.push_back({part + "/" + std::move(file.path), std::move(file.label)});
  }
}

Found open_split_folder(const std::string& path, const FolderParts& parts) {
  FolderListing train = list_folder(path + "/" + parts.train);
  if (train.files.empty()) fail_no_images(path + "/" + parts.train, train);
  const auto classes = classes_of(train.files);
  Found found;
  found.empty_classes = train.empty_classes;
  const std::size_t count = train.files.size();
  found.train = indices(0, count);
  found.ignored = train.ignored + train.links;
  std::vector<PictureFile> all;
  append_part(parts.train, std::move(train.files), all);
  if (parts.validation) {
    FolderListing validation = list_folder(path + "/" + *parts.validation);
    found.ignored += validation.ignored + validation.links;
    if (validation.files.empty()) fail_no_images(path + "/" + *parts.validation, validation);
    check_same_classes(path + "/" + *parts.validation, classes, validation.files);
    append_part(*parts.validation, std::move(validation.files), all);
    found.validation_name = "its '" + *parts.validation + "' folder";
  }
  found.validation = indices(count, all.size());
  found.dataset = make_file_dataset(path, std::move(all), classes);
  return found;
}

}  // namespace

std::vector<std::uint32_t> indices(std::size_t begin, std::size_t end) {
  std::vector<std::uint32_t> result(end - begin);
  std::iota(result.begin(), result.end(), static_cast<std::uint32_t>(begin));
  return result;
}

Found find_folder(const std::string& path) {
  if (const auto parts = find_parts(path)) return open_split_folder(path, *parts);
  FolderListing listing = list_folder(path);
  if (listing.files.empty()) fail_no_images(path, listing);
  const auto classes = classes_of(listing.files);
  Found found;
  found.empty_classes = listing.empty_classes;
  found.train = indices(0, listing.files.size());
  found.ignored = listing.ignored + listing.links;
  found.dataset = make_file_dataset(path, std::move(listing.files), classes);
  return found;
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
  found.train = indices(0, files.size());
  found.dataset = make_file_dataset(folder.empty() ? "." : folder, std::move(files), classes);
  return found;
}

}  // namespace cputrain
