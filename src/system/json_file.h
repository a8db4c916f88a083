#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace cputrain::system {

/// Reads a JSON file of at most so many bytes that may be hostile. Error(data) says what is wrong
/// with it, with the remedy behind: "(why it matters); what to try".
nlohmann::json read_json_file(const std::filesystem::path&, std::uintmax_t most,
                              std::string_view remedy);

}  // namespace cputrain::system
