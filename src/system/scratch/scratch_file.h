#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "system/pages.h"

/// Files on disk in place of memory. They have no name, or only while processes open them, so
/// nothing stays behind however these end.
namespace cputrain::system {

/// Bytes that are free in a folder's file system; nothing where it does not say.
std::optional<std::uint64_t> space_in(const std::string& folder);

/// Bytes that `ulimit -f` lets a file of this process have; of shared memory's files, too.
std::uint64_t longest_file();

/// The first of $TMPDIR, /var/tmp, /tmp and the working folder that may be written to and has room
/// for so many bytes, and some for others; empty where none has. `on_disk`: a file system of memory
/// will not do.
std::string folder_with_room(std::uint64_t bytes, bool on_disk = false);

/// Why none of them has, one after the other: "/var/tmp has 1.2 GB free of 2 GB, /tmp lies in
/// memory"; empty where one has.
std::string why_no_folder(std::uint64_t bytes, bool on_disk = false);

/// Why it is not the folder that TMPDIR names; empty where it is, or none is named.
std::string why_not_tmpdir(std::uint64_t bytes, bool on_disk = false);

/// A name for mkostemp() in that folder.
std::string scratch_name(const std::string& folder);

/// Takes room on disk for the whole file, so that a full disk shows here and is no SIGBUS later;
/// why that fails, or nothing.
std::string reserve(int descriptor, std::uint64_t bytes);

/// Begins to read what of a mapped file is not in memory, and waits for nothing.
void read_ahead(std::span<const std::uint8_t>);
/// Returns once all of it was in memory.
void wait_for_pages(std::span<const std::uint8_t>);

/// Such a file of this process alone, mapped; zeros. Error(usage) where it cannot be had.
class ScratchFile final : public SharedBlock {
 public:
  ScratchFile(const std::string& folder, std::size_t bytes);
  ~ScratchFile() override;

  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace cputrain::system
