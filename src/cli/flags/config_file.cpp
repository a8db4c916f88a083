#include "cli/flags/config_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/error.h"
#include "core/strict_json.h"
#include "system/bounded_file.h"

namespace cputrain::cli {

nlohmann::json read_settings(const std::string& path) {
  constexpr std::uintmax_t kMostBytes = 1 << 20;
  const auto refuse = [&](const std::string& what) {
    fail(ExitCode::usage,
         fmt::format("--config {}: {} (its flags would not count); give a file that holds a JSON "
                     "object of flags and values, as config.json does",
                     path, what));
  };
  std::string text;
  try {
    text = system::read_bounded(path, kMostBytes);
  } catch (const std::runtime_error& mistake) {
    refuse(mistake.what());
  }
  nlohmann::json settings;
  try {
    settings = parse_strict_json(text);
  } catch (const std::runtime_error& mistake) {
    refuse(std::string("is not valid JSON: ") + mistake.what());
  }
  if (!settings.is_object()) refuse("must hold a JSON object");
  return settings;
}

}  // namespace cputrain::cli
