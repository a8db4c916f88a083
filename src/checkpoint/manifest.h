#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "system/bounded_file.h"

/// MANIFEST, the list of a checkpoint's files, as text:
///
///     cputrain checkpoint 1
///     0f3a99c2 52871940 model.safetensors
///     ...
///     checksum 5e12ab00
///
/// First its format and version; a line per file: CRC-32C, bytes, name; last the CRC-32C of all
/// lines before. A list has one text only, so that a flipped bit or a cut anywhere in it is found.
namespace cputrain::checkpoint {

inline constexpr std::size_t kMostFiles = 64;
inline constexpr std::size_t kMostNameBytes = 100;
inline constexpr std::size_t kMostManifestBytes = 16384;

struct ManifestFile {
  std::string name;
  std::uint64_t size = 0;
  std::uint32_t checksum = 0;  ///< core/hash.h
};

/// Letters, digits, '.', '_' and '-', the first of them none of the signs: no path, nothing hidden.
bool is_manifest_name(std::string_view name);

/// Names are unique and good, and at most kMostFiles.
std::string manifest_text(std::span<const ManifestFile>);

/// The text may be hostile. Error(data) with words that follow the file's name: "names state.json
/// twice".
std::vector<ManifestFile> parse_manifest(std::string_view text);

/// CRC-32C of all bytes that a file had when it was opened. std::runtime_error where it cannot be
/// read or has become shorter.
std::uint32_t checksum_of(const system::RegularFile&);

/// The text for the files of a folder, once they are on disk: what they are is read back from
/// there. Error(output), and Error(internal) for a file of another kind of name.
std::string manifest_of(const std::filesystem::path& folder);

/// Reads every byte of a checkpoint: empty for a whole one, else what is wrong, naming the file:
/// "optimizer.safetensors is 4,096 bytes long, not 8,192".
std::string fault_of(const std::filesystem::path& folder);

}  // namespace cputrain::checkpoint
