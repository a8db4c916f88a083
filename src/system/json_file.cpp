#include "system/json_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/error.h"
#include "core/strict_json.h"
#include "core/text.h"
#include "system/bounded_file.h"

namespace cputrain::system {

nlohmann::json read_json_file(const std::filesystem::path& file, std::uintmax_t most,
                              std::string_view remedy) {
  const auto refuse = [&](const char* before, const std::string& what) {
    fail(ExitCode::data, fmt::format("{}{}{} {}", file.string(), before, what, remedy));
  };
  std::string text;
  try {
    text = read_bounded(file, most);
  } catch (const std::runtime_error& mistake) {
    refuse(": ", mistake.what());
  }
  try {
    return parse_strict_json(text);
  } catch (const std::runtime_error& mistake) {
    refuse(": is not valid JSON: ", printable(mistake.what()));
  }
  return {};
}

}  // namespace cputrain::system
