#include "datasets/list_file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "core/error.h"
#include "datasets/read_file.h"

namespace cputrain {
namespace {

constexpr std::size_t kMaxListBytes = std::size_t{1} << 33;

std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

PictureFile parse_line(std::string_view line, const std::string& path, std::size_t number) {
  std::size_t middle = line.rfind('\t');
  if (middle == std::string_view::npos && ending_of(path) == ".csv") middle = line.rfind(',');
  if (middle == std::string_view::npos || middle == 0 || middle + 1 == line.size()) {
    fail(ExitCode::data, "'" + path + "' line " + std::to_string(number) +
                             ": not a path, a tab and a class name (every line of a list must be); "
                             "correct the line");
  }
  return {std::string(line.substr(0, middle)), std::string(line.substr(middle + 1))};
}

}  // namespace

bool is_list_name(const std::string& path) {
  const std::string ending = ending_of(path);
  return ending == ".tsv" || ending == ".txt" || ending == ".csv";
}

std::vector<PictureFile> read_list(const std::string& path) {
  const FileContent content = read_file(path, kMaxListBytes);
  if (content.result.status != ReadStatus::ok && content.result.status != ReadStatus::empty) {
    fail(ExitCode::data, "list file '" + path + "' cannot be read: " + content.result.detail +
                             " (it names the pictures); check the path and its permissions");
  }
  std::string_view text(reinterpret_cast<const char*>(content.bytes.data()), content.bytes.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // UTF-8 mark of Windows editors
  std::vector<PictureFile> files;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    PictureFile file = parse_line(line, path, number);
    if (number == 1 && file.path == "path" && file.label == "label") continue;
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace cputrain
