#include "checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "checkpoint/folder.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"
#include "system/files.h"

namespace cputrain::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "cputrain checkpoint ";
constexpr std::string_view kFirstLine = "cputrain checkpoint 1\n";
constexpr std::string_view kChecksum = "checksum ";
constexpr std::size_t kLastLine = kChecksum.size() + 8 + 1;  // eight digits, the line's end

[[noreturn]] void wrong(const std::string& what) {
  fail(ExitCode::data, what);  // after the file's name, among what is wrong with a checkpoint
}

std::string with_checksum(std::string lines) {
  return lines + fmt::format("{}{:08x}\n", kChecksum, crc32c(lines));
}

/// Without the last line, whose checksum is right.
std::string_view checked_lines(std::string_view text) {
  if (text.size() > kMostManifestBytes) wrong("is longer than any MANIFEST");
  if (text.size() < kLastLine) wrong("has no checksum: it was cut");
  const auto lines = text.substr(0, text.size() - kLastLine);
  if (!text.substr(lines.size()).starts_with(kChecksum)) wrong("has no checksum: it was cut");
  if (with_checksum(std::string(lines)) != text) wrong("does not have the checksum that it says");
  return lines;
}

ManifestFile file_of(const std::string& line, std::size_t line_number) {
  const auto words = split(line, ' ');
  if (words.size() == 3 && is_manifest_name(words[2])) {
    const auto checksum = hexadecimal<std::uint32_t>(words[0]);
    const auto size = number_in<std::uint64_t>(words[1]);
    if (checksum && size) return {words[2], *size, *checksum};
  }
  wrong(fmt::format("line {} is not that of a file: {}", line_number, printable(line)));
}

/// Waits for what its writer may have left to the system, and reads it back.
ManifestFile written_file(const fs::path& path) {
  system::sync_file(path);
  try {
    const system::RegularFile file(path);
    return {path.filename().string(), file.size(), checksum_of(file)};
  } catch (const std::runtime_error& error) {
    fail(ExitCode::output,
         path.string() + " " + error.what() + " (a checkpoint would be lost); look at the disk");
  }
}

/// Those of a folder, but its MANIFEST, by name.
std::vector<ManifestFile> written_files(const fs::path& folder) {
  std::vector<ManifestFile> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == kManifestName) continue;
    if (!is_manifest_name(name) || files.size() == kMostFiles) {
      fail(ExitCode::internal, "a checkpoint cannot have the file " + printable(name));
    }
    files.push_back(written_file(entry->path()));
  }
  if (error) system::cannot_write(folder, error.value());
  std::ranges::sort(files, {}, &ManifestFile::name);
  return files;
}

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

bool is_manifest_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto good = [&](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= kMostNameBytes && plain(name.front()) &&
         std::ranges::all_of(name, good);
}

std::string manifest_text(std::span<const ManifestFile> files) {
  std::string lines(kFirstLine);
  for (const ManifestFile& file : files) {
    lines += fmt::format("{:08x} {} {}\n", file.checksum, file.size, file.name);
  }
  return with_checksum(std::move(lines));
}

std::vector<ManifestFile> parse_manifest(std::string_view text) {
  const std::string_view checked = checked_lines(text);
  if (!checked.starts_with(kFirstLine)) {
    wrong(checked.starts_with(kFormat) ? "is of another version of the format"
                                       : "is not that of a checkpoint");
  }
  auto lines = split(checked.substr(kFirstLine.size()), '\n');
  if (lines.back().empty()) lines.pop_back();  // after the last line's end
  if (lines.size() > kMostFiles) wrong("names too many files");
  std::vector<ManifestFile> files;
  std::set<std::string> names;
  for (const std::string& line : lines) {
    files.push_back(file_of(line, files.size() + 2));
    if (!names.insert(files.back().name).second) wrong("names " + files.back().name + " twice");
  }
  // Numbers have other spellings, such as zeros before them, that no program of ours writes.
  if (manifest_text(files) != text) wrong("is not as this program writes it");
  return files;
}

std::uint32_t checksum_of(const system::RegularFile& file) {
  std::uint32_t checksum = 0;
  file.for_each_piece(0, file.size(), [&](std::span<const std::byte> piece) {
    checksum = crc32c(piece, checksum);
  });
  return checksum;
}

std::string manifest_of(const fs::path& folder) { return manifest_text(written_files(folder)); }

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
