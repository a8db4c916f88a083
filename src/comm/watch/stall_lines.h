#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cputrain::watch {

inline constexpr const char* kStallsName = "stalls.jsonl";

/// A line of stalls.jsonl: the entry, with the time before it.
std::string stall_line(const nlohmann::ordered_json& entry);

/// Adds it to that file of a folder. A failure is ignored.
void append_stall(const std::filesystem::path& folder, std::string line);

}  // namespace cputrain::watch
