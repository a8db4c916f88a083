#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"

namespace cputrain::checkpoint {

inline std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline void put(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Bytes that do not repeat soon.
inline std::string bytes_of(std::size_t count) {
  std::string bytes;
  unsigned value = 1;
  for (std::size_t i = 0; i < count; ++i) {
    value = value * 1664525 + 1013904223;
    bytes += static_cast<char>(value >> 24);
  }
  return bytes;
}

inline void fill(const std::filesystem::path& folder, const std::string& state) {
  put(folder / kModelName, bytes_of(10000));
  put(folder / kOptimizerName, bytes_of(5000));
  put(folder / kRanksName, bytes_of(100));
  put(folder / kStateName, state);
}

/// A whole checkpoint with these words in state.json; its folder.
inline std::filesystem::path make(const std::filesystem::path& run, std::uint64_t step,
                                  const std::string& state = "{}") {
  Writer writer(run, step);
  fill(writer.folder(), state);
  writer.commit();
  return folder_of(run, step);
}

inline std::size_t entries(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

}  // namespace cputrain::checkpoint
