#include "cli/algorithm_cache.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/files.h"
#include "core/json_text.h"
#include "core/strict_json.h"

namespace cputrain {
namespace {

constexpr const char* kFound = "found";
constexpr std::size_t kMostEntries = 256;
constexpr std::uintmax_t kMostBytes = 1 << 20;

using Entry = std::pair<std::string, std::string>;

/// Nothing of a file that is not one of ours: it may be anything, a pipe or another program's.
std::vector<Entry> entries_of(const std::filesystem::path& file) {
  std::vector<Entry> entries;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return entries;
  if (std::filesystem::file_size(file, error) > kMostBytes || error) return entries;
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  try {
    const nlohmann::json parsed = parse_strict_json(text);
    for (const auto& entry : parsed.at(kFound)) {
      entries.emplace_back(entry.at("for").get<std::string>(),
                           entry.at("algorithms").get<std::string>());
    }
  } catch (const std::exception&) {
    entries.clear();
  }
  return entries;
}

}  // namespace

std::string AlgorithmCache::find(const std::string& key) const {
  const std::vector<Entry> entries = entries_of(file_);
  const auto found = std::ranges::find(entries, key, &Entry::first);
  return found == entries.end() ? "" : found->second;
}

void AlgorithmCache::keep(const std::string& key, const std::string& text) const {
  std::vector<Entry> entries = entries_of(file_);
  std::erase_if(entries, [&](const Entry& entry) { return entry.first == key; });
  entries.emplace_back(key, text);
  if (entries.size() > kMostEntries) {
    entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(kMostEntries));
  }
  nlohmann::ordered_json found = nlohmann::ordered_json::array();
  for (const auto& [name, value] : entries) found.push_back({{"for", name}, {"algorithms", value}});
  make_folder(file_.parent_path());
  AtomicFile file(file_);
  file.write(json_text(nlohmann::ordered_json{{kFound, found}}, 1) + "\n");
  file.commit(Durability::process);
}

std::optional<std::filesystem::path> algorithms_file() {
  const auto folder = [](const char* variable) -> std::filesystem::path {
    const char* value = std::getenv(variable);
    return value ? value : "";
  };
  std::filesystem::path cache = folder("XDG_CACHE_HOME");
  if (!cache.is_absolute()) {  // which the XDG specification demands
    const std::filesystem::path home = folder("HOME");
    if (!home.is_absolute()) return std::nullopt;
    cache = home / ".cache";
  }
  return cache / "cputrain" / "algorithms.json";
}

}  // namespace cputrain
