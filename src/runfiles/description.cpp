#include "runfiles/description.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "system/bounded_file.h"

namespace cputrain::runfiles {
namespace {

nlohmann::json read_object(const std::filesystem::path& file) {
  constexpr std::uintmax_t kMostBytes = 16 << 20;  // of many ranks' places
  nlohmann::json object = parse_strict_json(system::read_bounded(file, kMostBytes));
  if (!object.is_object()) fail(ExitCode::data, "it is no JSON object");
  return object;
}

}  // namespace

nlohmann::json read_config(const std::filesystem::path& run) {
  return read_object(run / kConfigName);
}

nlohmann::json read_environment(const std::filesystem::path& run) {
  return read_object(run / kEnvironmentName);
}

}  // namespace cputrain::runfiles
