#include "datasets/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "datasets/file_dataset.h"
#include "datasets/folder.h"
#include "datasets/idx.h"
#include "datasets/list_file.h"
#include "datasets/split.h"
#include "datasets/synthetic.h"

namespace cputrain {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDefaultSynthetic = 25'000;  // the size of Dogs vs Cats

/// A data set before it is split: samples [0, train) may be divided further.
struct Found {
  std::unique_ptr<Dataset> dataset;
  std::size_t train = 0;
  std::string validation_name;  ///< of its own validation part; empty when it has none
  std::string things = "files";
  std::size_t ignored = 0;
};

std::vector<std::string> classes_of(const std::vector<PictureFile>& files) {
  std::set<std::string> names;
  for (const PictureFile& file : files) names.insert(file.label);
  return {names.begin(), names.end()};
}

[[noreturn]] void fail_no_images(const std::string& path, const FolderListing& listing) {
  std::string seen;
  if (listing.ignored > 0) seen += fmt::format(", {} other files", listing.ignored);
  if (listing.links > 0) seen += fmt::format(", {} links, which are not followed", listing.links);
  fail(ExitCode::data,
       fmt::format("no images in '{}'{} (a folder of class folders is read, or names like "
                   "cat.1.jpg; .bmp .gif .jpeg .jpg .png); check the path",
                   path, seen));
}

/// At least two classes with pictures; `empty` are class folders without any.
void check_classes(const std::string& path, const std::vector<std::string>& classes,
                   const std::vector<std::string>& empty) {
  if (classes.size() >= 2) return;
  const std::string hint =
      empty.empty() ? "" : fmt::format("; no images in class folder '{}'", join(empty, "', '"));
  fail(ExitCode::data,
       fmt::format("all images of '{}' are of one class, '{}'{} (a classifier needs "
                   "at least two classes); put each class into a folder of its own",
                   path, classes[0], hint));
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
  check_classes(path + "/" + parts.train, classes, train.empty_classes);
  Found found;
  found.train = train.files.size();
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
  found.dataset = make_file_dataset(path, std::move(all), classes);
  return found;
}

Found open_folder(const std::string& path) {
  if (const auto parts = find_parts(path)) return open_split_folder(path, *parts);
  FolderListing listing = list_folder(path);
  if (listing.files.empty()) fail_no_images(path, listing);
  const auto classes = classes_of(listing.files);
  check_classes(path, classes, listing.empty_classes);
  Found found;
  found.train = listing.files.size();
  found.ignored = listing.ignored + listing.links;
  found.dataset = make_file_dataset(path, std::move(listing.files), classes);
  return found;
}

Found open_list(const std::string& path) {
  std::vector<PictureFile> files = read_list(path);
  if (files.empty()) {
    fail(ExitCode::data, "list file '" + path +
                             "' names no images (nothing to train on); its lines "
                             "are a path, a tab and a class name");
  }
  const auto classes = classes_of(files);
  check_classes(path, classes, {});
  const std::string folder = fs::path(path).parent_path().string();
  Found found;
  found.train = files.size();
  found.dataset = make_file_dataset(folder.empty() ? "." : folder, std::move(files), classes);
  return found;
}

Found open_idx_folder(const std::string& folder) {
  std::error_code ignored;  // what cannot be looked into is not there for us
  if (!fs::is_directory(folder, ignored)) {
    fail(ExitCode::data, "folder '" + folder +
                             "' does not exist (idx: needs the folder of MNIST's "
                             "files); check the path");
  }
  IdxData idx = open_idx(folder);
  check_classes(folder, idx.dataset->classes(), {});
  return {std::move(idx.dataset), idx.train, idx.has_test ? "its t10k files" : "", "images", 0};
}

Found open_synthetic(const std::string& spec, std::uint64_t seed) {
  std::size_t count = kDefaultSynthetic;
  if (spec != "synthetic") {
    const std::string_view digits = std::string_view(spec).substr(spec.find(':') + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error != std::errc() || end != digits.data() + digits.size() || count < 2 ||
        count > 0xFFFFFFFFu) {
      fail(ExitCode::usage, "--data " + spec + ": '" + std::string(digits) +
                                "' is not a number of images (2 to 4294967295); try "
                                "--data synthetic:2000");
    }
  }
  return {make_synthetic_dataset(count, seed), count, "", "synthetic images", 0};
}

Found find_data(const DataRequest& request) {
  const std::string& spec = request.spec;
  if (spec == "synthetic" || spec.starts_with("synthetic:")) {
    return open_synthetic(spec, request.seed);
  }
  if (spec.starts_with("idx:")) return open_idx_folder(spec.substr(4));
  std::error_code error;
  const auto kind = fs::status(spec, error).type();
  if (kind == fs::file_type::directory) return open_folder(spec);
  if (kind == fs::file_type::regular && is_list_name(spec)) return open_list(spec);
  if (kind == fs::file_type::not_found) {
    fail(ExitCode::data, "--data '" + spec +
                             "' does not exist (it should be a folder of class "
                             "folders, a list file, idx:DIR or synthetic[:N]); check the path");
  }
  fail(ExitCode::data,
       "--data '" + spec + "' is neither a readable folder nor a list file (.tsv, .txt, .csv)" +
           (error ? ": " + error.message() : "") + "; name a folder of class folders");
}

/// "300 of 1600" where a limit applies.
std::string of_available(std::size_t used, std::size_t available) {
  return used == available ? fmt::format("{}", used) : fmt::format("{} of {}", used, available);
}

std::vector<std::uint32_t> indices(std::size_t begin, std::size_t end) {
  std::vector<std::uint32_t> result(end - begin);
  std::iota(result.begin(), result.end(), static_cast<std::uint32_t>(begin));
  return result;
}

/// For the log, beginning with the words that Keras uses.
std::string describe(const Found& found, const DataSource& source, const Division& parts,
                     const std::string& validation_name) {
  std::string text =
      fmt::format("Found {} {} belonging to {} classes. Using {} for training",
                  found.dataset->size(), found.things, found.dataset->classes().size(),
                  of_available(source.train.size(), parts.rest.size()));
  if (!parts.chosen.empty()) {
    text +=
        fmt::format(" and {} for validation ({})",
                    of_available(source.validation.size(), parts.chosen.size()), validation_name);
  }
  text += ".";
  if (found.ignored > 0) {
    text += fmt::format(" Ignored {} other file{}.", found.ignored, found.ignored == 1 ? "" : "s");
  }
  return text;
}

}  // namespace

DataSource open_data(const DataRequest& request) {
  Found found = find_data(request);
  const Dataset& data = *found.dataset;
  const auto label_of = [&data](std::uint32_t sample) { return data.label(sample); };
  const int classes = static_cast<int>(data.classes().size());
  Division parts{indices(found.train, data.size()), indices(0, found.train)};
  std::string validation_name = found.validation_name;
  if (validation_name.empty() && request.validation_split > 0) {
    parts = split_validation(parts.rest, label_of, classes, request.validation_split, request.seed);
    validation_name = fmt::format("{:.4g} %, chosen by seed", request.validation_split * 100);
  }
  const auto limited = [&](const std::vector<std::uint32_t>& samples,
                           const std::optional<std::size_t>& limit, Choice use) {
    if (!limit || *limit >= samples.size()) return samples;
    return choose_stratified(samples, label_of, classes, *limit, request.seed, use).chosen;
  };
  DataSource source;
  source.train = limited(parts.rest, request.limit_train, Choice::limit_train);
  source.validation = limited(parts.chosen, request.limit_validation, Choice::limit_validation);
  source.ignored = found.ignored;
  source.description = describe(found, source, parts, validation_name);
  source.dataset = std::move(found.dataset);
  return source;
}

}  // namespace cputrain
