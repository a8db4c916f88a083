#include "logging/epoch_lines.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "system/bounded_file.h"

namespace cputrain::logging {

void for_epoch_lines(const std::filesystem::path& path,
                     const std::function<void(const nlohmann::json& line)>& look) {
  constexpr system::BoundedLines::Limits kLimits{.file = std::uintmax_t{1} << 32,
                                                 .line = 1 << 20};  // far more than is written
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  try {
    system::BoundedLines lines(path, kLimits);
    while (const auto text = lines.next()) {
      const auto line = nlohmann::json::parse(*text, nullptr, false);
      if (line.is_object() && line.value("type", nlohmann::json()) == "epoch") look(line);
    }
  } catch (const std::runtime_error&) {  // what cannot be read is not there
  }
}

}  // namespace cputrain::logging
