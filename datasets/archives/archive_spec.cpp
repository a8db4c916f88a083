#include "datasets/archives/archive_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/text.h"
#include "datasets/decode/limits.h"
#include "datasets/folders/folder_names.h"

namespace cputrain::datasets {
namespace {

constexpr std::array<std::string_view, 10> kArchiveEndings{
    ".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst", ".tzst", ".tar.bz2", ".tbz2"};

bool is_archive_name(const std::string& path) {
  const std::string name = lower_case(path);
  return std::ranges::any_of(kArchiveEndings, [&](auto ending) { return name.ends_with(ending); });
}

/// "000" and "015" of a range, in the text before and behind which nothing changes.
struct ShardRange {
  std::string_view before, first, last, behind;
};

std::optional<ShardRange> shard_range(std::string_view text) {
  const std::size_t open = text.find('{'), dots = text.find("..", open),
                    close = text.find('}', dots);
  if (close == std::string_view::npos || open > dots) return std::nullopt;
  const ShardRange range{text.substr(0, open), text.substr(open + 1, dots - open - 1),
                         text.substr(dots + 2, close - dots - 2), text.substr(close + 1)};
  const auto is_number = [](std::string_view digits) {
    return !digits.empty() && digits.size() < 10 &&
           digits.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!is_number(range.first) || !is_number(range.last)) return std::nullopt;
  return range;
}

std::uint32_t shard_number(std::string_view digits) {
  std::uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

/// As the shell does it: with zeros before, where the first has them, to the width of the longer.
std::vector<std::string> shard_names(const ShardRange& range, const std::string& text) {
  const std::uint32_t first = shard_number(range.first), last = shard_number(range.last);
  if (first > last || last - first >= kMaxShards) {
    fail(ExitCode::data,
         fmt::format("'{}' is no range of archives (from a number to a larger one, of at most {}); "
                     "write it as train-{{000..015}}.tar",
                     text, with_commas(kMaxShards)));
  }
  const bool zeros = range.first.starts_with('0') && range.first.size() > 1;
  const std::size_t width = zeros ? std::max(range.first.size(), range.last.size()) : 1;
  std::vector<std::string> names;
  for (std::uint32_t number = first; number <= last; ++number) {
    names.push_back(fmt::format("{}{:0{}}{}", range.before, number, width, range.behind));
  }
  return names;
}

}  // namespace

std::string archive_endings() { return fmt::format("{}", fmt::join(kArchiveEndings, " ")); }

std::optional<ArchiveSpec> parse_archive_spec(const std::string& text) {
  for (std::size_t end = text.find('/', 1);; end = text.find('/', end + 1)) {
    const std::string path = text.substr(0, end);
    if (is_archive_name(path)) {
      const std::string inner = end == std::string::npos ? "" : text.substr(end + 1);
      std::error_code ignored;
      if (std::filesystem::is_regular_file(path, ignored)) return ArchiveSpec{{path}, path, inner};
      if (const auto range = shard_range(path))
        return ArchiveSpec{shard_names(*range, path), path, inner};
    }
    if (end == std::string::npos) return std::nullopt;
  }
}

}  // namespace cputrain::datasets
