#include "datasets/lists/annotation_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "datasets/folders/folder_names.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> json_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (lower_case(name).ends_with(".json") && !name.starts_with('.')) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

/// Where several are for training, the one of the things shown: COCO has captions, too.
std::string training_json(const std::vector<std::string>& names) {
  for (const std::string_view word : {"instances_train", "train", "annotations"}) {
    const auto found = std::ranges::find_if(names, [word](const std::string& name) {
      return lower_case(name).find(word) != std::string::npos;
    });
    if (found != names.end()) return *found;
  }
  return {};
}

/// instances_val2017.json beside instances_train2017.json.
std::string validation_json(const std::vector<std::string>& names, const std::string& train) {
  const std::size_t at = lower_case(train).find("train");
  if (at == std::string::npos) return {};
  for (const char* part : {"val", "valid", "validation", "test"}) {
    std::string name = train;
    name.replace(at, 5, part);
    if (std::ranges::binary_search(names, name)) return name;
  }
  return {};
}

/// How many of the first files lie below the folder.
std::size_t held(const fs::path& folder, const ImageFiles& files) {
  constexpr std::size_t kLookedAt = 16;
  std::size_t held = 0;
  for (std::size_t i = 0; i < std::min(kLookedAt, files.size()); ++i) {
    std::error_code ignored;
    held += fs::exists(folder / files.path(i), ignored) ? 1 : 0;
  }
  return held;
}

}  // namespace

std::string folder_of(const std::string& file) {
  const std::string folder = fs::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string find_annotations(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  const fs::path plain = path.has_filename() ? path : path.parent_path();  // "coco/" is "coco"
  for (const fs::path& place :
       {plain, plain / "annotations", plain.parent_path() / "annotations"}) {
    const std::vector<std::string> names = json_names(place.string());
    const std::string train = training_json(names);
    if (train.empty()) continue;
    const std::string validation = validation_json(names, train);
    std::string spec = "coco:" + (place / train).string();
    if (!validation.empty()) spec += "," + (place / validation).string();
    return spec;
  }
  return {};
}

std::string annotations_or(const std::string& folder, const std::string& other) {
  const std::string found = find_annotations(folder);
  return found.empty() ? other : found;
}

std::string find_yearly_json(const std::string& folder, const std::string& part) {
  std::string newest;
  for (const std::string& place : {folder, folder + "/annotations"}) {
    for (const std::string& name : json_names(place)) {
      const bool fits = name.size() == part.size() + 9 && name.starts_with(part) &&
                        std::all_of(name.begin() + static_cast<std::ptrdiff_t>(part.size()),
                                    name.end() - 5, [](char c) { return c >= '0' && c <= '9'; });
      if (fits) newest = std::max(newest, place + "/" + name);
    }
    if (!newest.empty()) break;
  }
  return newest;
}

std::string folder_of_images(const std::string& json, const std::string& usual,
                             const ImageFiles& files) {
  const fs::path folder = folder_of(json);
  // "train2017" of "instances_train2017.json".
  const std::string stem = fs::path(json).stem().string();
  const std::string part = stem.substr(stem.rfind('_') + 1);
  const fs::path above = folder == "." ? fs::path("..") : fs::path(folder_of(folder.string()));
  std::pair<std::size_t, fs::path> best{0, usual};
  for (const fs::path& place :
       {folder, above / part, above / "images" / part, above / "images", above, folder / part,
        folder / "images" / part, folder / "images", fs::path(usual)}) {
    const std::size_t count = held(place, files);
    if (count > best.first) best = {count, place};
  }
  return best.second.lexically_normal().string();
}

}  // namespace cputrain::datasets
