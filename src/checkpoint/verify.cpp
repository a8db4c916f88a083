#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "core/text.h"
#include "system/bounded_file.h"

namespace cputrain::checkpoint {
namespace {

namespace fs = std::filesystem;

/// What is wrong with a file's kind, as words that follow its name; empty for a regular file. A
/// link may lead anywhere, and to open a device may do something.
std::string fault_of_kind(const fs::path& path) {
  std::error_code error;
  const auto type = fs::symlink_status(path, error).type();
  if (type == fs::file_type::not_found) return "is missing";
  if (type == fs::file_type::regular) return {};
  return error ? "cannot be read: " + error.message() : "is no regular file";
}

/// Every byte is read where `size` is the one that it should have.
std::string fault_of_file(const fs::path& path, const ManifestFile& expected) {
  if (std::string fault = fault_of_kind(path); !fault.empty()) return fault;
  const system::RegularFile file(path);
  if (file.size() != expected.size) {
    return fmt::format("is {} bytes long, not {}", with_commas(file.size()),
                       with_commas(expected.size));
  }
  const std::uint32_t checksum = checksum_of(file);
  if (checksum == expected.checksum) return {};
  return fmt::format("is damaged: its checksum is {:08x}, not {:08x}", checksum, expected.checksum);
}

/// All that a reader of a checkpoint would take must be in the list; other files do not matter.
std::string fault_of_list(const fs::path& folder, const std::vector<ManifestFile>& files) {
  for (const std::string name : {kModelName, kOptimizerName, kRanksName, kStateName, kBestName}) {
    if (std::ranges::find(files, name, &ManifestFile::name) != files.end()) continue;
    std::error_code ignored;
    const bool there =
        fs::symlink_status(folder / name, ignored).type() != fs::file_type::not_found;
    if (there || name != kBestName) return fmt::format("{} does not name {}", kManifestName, name);
  }
  return {};
}

/// The fault of one file, after its name; what reading it throws is one.
template <class Find>
std::string named(const std::string& name, Find find) {
  std::string fault;
  try {
    fault = find();
  } catch (const std::runtime_error& error) {
    fault = error.what();
  }
  return fault.empty() ? fault : name + " " + fault;
}

}  // namespace

std::string fault_of(const fs::path& folder) {
  std::vector<ManifestFile> files;
  const fs::path manifest = folder / kManifestName;
  std::string fault = named(kManifestName, [&] {
    std::string kind = fault_of_kind(manifest);
    if (kind.empty()) files = parse_manifest(system::read_bounded(manifest, kMostManifestBytes));
    return kind;
  });
  if (fault.empty()) fault = fault_of_list(folder, files);
  for (const ManifestFile& file : files) {
    if (!fault.empty()) break;
    fault = named(file.name, [&] { return fault_of_file(folder / file.name, file); });
  }
  return fault;
}

}  // namespace cputrain::checkpoint
