#pragma once

#include <span>
#include <string_view>

namespace cputrain::simulation {

/// A platform that is built in: the text of src/scaling/simulation/platforms/NAME.json.
struct PlatformFile {
  std::string_view name, text;
};

std::span<const PlatformFile> platform_files();

}  // namespace cputrain::simulation
