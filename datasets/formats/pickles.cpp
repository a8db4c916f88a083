#include "datasets/formats/pickles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/error.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

std::string last_name(const std::string& path) {
  const fs::path whole(path);
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

}  // namespace

bool is_pickle_name(const std::string& path) {
  constexpr std::array<std::string_view, 9> kNames{
      "data_batch_1", "data_batch_2", "data_batch_3",        "data_batch_4",    "data_batch_5",
      "test_batch",   "batches.meta", "cifar-10-batches-py", "cifar-100-python"};
  const std::string name = last_name(path);
  return name.ends_with(".pkl") || name.ends_with(".pickle") ||
         std::ranges::find(kNames, name) != kNames.end();
}

std::string find_pickle(const std::string& folder) {
  if (is_pickle_name(folder)) return folder;
  std::error_code error;
  std::string found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (is_pickle_name(path) && (found.empty() || path < found)) found = path;
  }
  return found;
}

void refuse_pickle(const std::string& path) {
  fail(ExitCode::data,
       fmt::format("'{}' is a Python pickle (reading one can run any program, so none is read); "
                   "get the binary version of CIFAR-10 or CIFAR-100, 'scripts/datasets/cifar10 "
                   "DIR', and use --data cifar10:DIR or cifar100:DIR; other pickles: write the "
                   "images into class folders",
                   path));
}

}  // namespace cputrain::datasets
