#include "datasets/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "datasets/limits.h"

namespace cputrain {
namespace {

namespace fs = std::filesystem;

struct Content {
  std::vector<std::string> folders, files;  // sorted names
  std::size_t links = 0;
};

[[noreturn]] void fail_unreadable(const fs::path& folder, const std::error_code& error) {
  fail(ExitCode::data, "folder '" + folder.string() + "' cannot be read: " + error.message() +
                           " (its pictures are needed); check its permissions");
}

Content content_of(const fs::path& folder) {
  Content content;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; entry != end; entry.increment(error)) {
    if (error) break;
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.')) continue;
    const auto kind = entry->symlink_status(error).type();
    if (error) break;
    if (kind == fs::file_type::symlink) ++content.links;
    if (kind == fs::file_type::directory) content.folders.push_back(name);
    if (kind == fs::file_type::regular) content.files.push_back(name);
  }
  if (error) fail_unreadable(folder, error);
  std::ranges::sort(content.folders);
  std::ranges::sort(content.files);
  return content;
}

/// All pictures below one class folder.
void list_class(const fs::path& root, const std::string& below, const std::string& label,
                FolderListing& listing) {
  const Content content = content_of(root / below);
  listing.links += content.links;
  for (const std::string& name : content.files) {
    if (is_picture_name(name)) {
      listing.files.push_back({fmt::format("{}/{}", below, name), label});
    } else {
      ++listing.ignored;
    }
  }
  if (listing.files.size() > kMaxFiles) {
    fail(ExitCode::data, "'" + root.string() + "' holds more than " + std::to_string(kMaxFiles) +
                             " pictures (indices have 32 bits); split the data set");
  }
  for (const std::string& name : content.folders) {
    list_class(root, fmt::format("{}/{}", below, name), label, listing);
  }
}

/// "cat" of "cat.17.jpg"; empty when the name has another form.
std::string label_in_name(std::string_view name) {
  const std::size_t ending = name.rfind('.');
  const std::size_t number = name.rfind('.', ending - 1);
  if (ending == 0 || number == std::string_view::npos || number == 0) return {};
  const std::string_view digits = name.substr(number + 1, ending - number - 1);
  const bool all_digits = !digits.empty() && std::ranges::all_of(digits, [](unsigned char c) {
    return std::isdigit(c) != 0;
  });
  return all_digits ? std::string(name.substr(0, number)) : std::string();
}

void list_flat(const std::vector<std::string>& names, FolderListing& listing) {
  for (const std::string& name : names) {
    std::string label = is_picture_name(name) ? label_in_name(name) : std::string();
    if (label.empty()) {
      ++listing.ignored;
    } else {
      listing.files.push_back({name, std::move(label)});
    }
  }
  std::ranges::stable_sort(listing.files, {}, &PictureFile::label);
}

/// False for a folder of pictures that all lack a label.
bool has_labels(const fs::path& folder) {
  const FolderListing listing = list_folder(folder);
  return !listing.files.empty() || listing.ignored == 0;
}

}  // namespace

FolderListing list_folder(const fs::path& folder) {
  const Content content = content_of(folder);
  FolderListing classes;
  classes.links = content.links;
  if (content.folders.size() > kMaxClasses) {
    fail(ExitCode::data, "'" + folder.string() + "' holds more than " +
                             std::to_string(kMaxClasses) +
                             " class folders (is it a folder of class "
                             "folders?); name the folder above the classes");
  }
  for (const std::string& name : content.folders) {
    const std::size_t before = classes.files.size();
    list_class(folder, name, name, classes);
    if (classes.files.size() == before) classes.empty_classes.push_back(name);
  }
  FolderListing flat;
  list_flat(content.files, flat);
  if (!classes.files.empty() || flat.files.empty()) {
    classes.ignored += content.files.size();
    return classes;
  }
  flat.links = content.links;
  return flat;
}

std::vector<std::string> list_pictures(const std::string& folder) {
  std::vector<std::string> pictures;
  std::vector<fs::path> waiting{folder};
  while (!waiting.empty()) {
    const fs::path next = std::move(waiting.back());
    waiting.pop_back();
    const Content content = content_of(next);
    for (const std::string& name : content.files) {
      if (is_picture_name(name)) pictures.push_back((next / name).string());
    }
    for (const std::string& name : content.folders) waiting.push_back(next / name);
  }
  std::ranges::sort(pictures);
  return pictures;
}

std::optional<FolderParts> find_parts(const fs::path& folder) {
  const Content content = content_of(folder);
  std::map<std::string, std::string> by_lower_case;
  for (const std::string& name : content.folders) {
    std::string lower = name;
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    by_lower_case[lower] = name;
  }
  if (!by_lower_case.contains("train")) return std::nullopt;
  const std::string train = by_lower_case["train"];
  for (const char* name : {"val", "validation", "test"}) {
    if (!by_lower_case.contains(name)) continue;
    const std::string& found = by_lower_case[name];
    if (name != std::string_view("test") || has_labels(folder / found)) {
      return FolderParts{train, found};
    }
    by_lower_case.erase(name);  // Kaggle's pictures to be guessed, 1.jpg and so on
  }
  by_lower_case.erase("test1");
  // Beside other folders, "train" is more likely a class: trains among cars and ships.
  if (by_lower_case.size() == 1) return FolderParts{train, std::nullopt};
  return std::nullopt;
}

}  // namespace cputrain
