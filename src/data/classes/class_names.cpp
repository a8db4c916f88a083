#include "data/classes/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::data {
namespace {

/// Behind a number's name as often as that is one of the names.
constexpr std::string_view kNoName = " (no name)";

}  // namespace

std::string class_names_mistake(std::span<const std::string> names) {
  // A byte becomes at most seven as escapes inside of escapes; a weight file's head has 100 MB.
  constexpr std::size_t kMostBytes = 1000, kMostInAll = std::size_t{8} << 20;
  std::size_t all = 0;
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    const auto mistake = [&](const char* what) {
      return fmt::format("class name '{}' {}", printable(name), what);
    };
    all += name.size();
    if (name.empty()) return mistake("is empty");
    if (!is_utf8(name)) return mistake("is not UTF-8");
    if (name.find('\0') != std::string::npos) return mistake("holds a zero byte");
    if (name.size() > kMostBytes) return mistake("has more than 1000 bytes");
    if (!seen.insert(name).second) return mistake("stands for two classes");
  }
  return all > kMostInAll ? "the class names have more than 8 MiB together" : "";
}

void check_class_names(const std::string& data, std::span<const std::string> names) {
  const std::string mistake = class_names_mistake(names);
  if (mistake.empty()) return;
  fail(
      ExitCode::data,
      fmt::format("--data '{}': {} (weights trained with it could not be kept with their classes); "
                  "rename the class, or convert a list to UTF-8 (iconv does)",
                  data, mistake));
}

std::string name_of_nameless(std::span<const std::string> names, std::size_t label) {
  std::string name = fmt::format("class {}", label);
  while (std::ranges::find(names, name) != names.end()) name += kNoName;
  return name;
}

bool is_name_of_nameless(std::string_view name, std::size_t label) {
  while (name.ends_with(kNoName)) name.remove_suffix(kNoName.size());
  return name == fmt::format("class {}", label);
}

bool are_names_of_nameless(std::span<const std::string> names) {
  for (std::size_t label = 0; label < names.size(); ++label) {
    if (!is_name_of_nameless(names[label], label)) return false;
  }
  return true;
}

std::string missing_classes(const DataSource& source, std::span<const std::uint32_t> samples) {
  const std::vector<std::string>& classes = source.dataset->classes();
  std::vector<bool> seen(classes.size());
  for (const std::uint32_t sample : samples) {
    seen[static_cast<std::size_t>(source.dataset->label(sample))] = true;
  }
  const std::set<std::string> empty(source.empty_classes.begin(), source.empty_classes.end());
  std::vector<std::string> missing;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (!seen[c] && !empty.contains(classes[c])) missing.push_back(printable(classes[c]));
  }
  if (missing.empty()) return {};
  return fmt::format("{} of {} classes ({})", missing.size(), classes.size() - empty.size(),
                     first_few(missing));
}

}  // namespace cputrain::data
