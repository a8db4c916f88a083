#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "system/file_system.h"

/// Writing so that a file is whole or absent: Error(output) names what could not be written. What a
/// file system lacks (system/file_system.h) is done without.
///
/// A file of ours in a folder of ours (AtomicFile, GrowingFile, write_own_file) is made new by its
/// name: a link of that name is not followed and a pipe not opened, since another user of the
/// folder may have put them there; a device is refused. Where a person named the file
/// (open_given_file), a link leads to what is meant, and a pipe or a device is written to as it is.
namespace cputrain::system {

/// What commit() waits for. `process`: the file survives the death of this process, which is quick;
/// `disk`: a power cut, too.
enum class Durability { process, disk };

/// Removes what killed processes left of an AtomicFile of this path: files under its temporary
/// names that no process holds a lock of. Where the file system has no locks, those older than a
/// day.
void remove_abandoned(const std::filesystem::path&);

/// What is written piece by piece and there for others with commit().
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  virtual void commit(Durability) = 0;
};

/// A file that grows under a temporary name and appears whole under its own with commit(). Without
/// commit() nothing is left behind; where the process is killed, the next AtomicFile of that path
/// clears up. The temporary file is locked until then, a sign that its process lives.
class AtomicFile final : public OutputFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile() override;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  using OutputFile::write;
  void write(std::span<const std::byte> bytes) override;
  /// Writes at a place of its own; write() goes on where it was.
  void write_at(std::size_t offset, std::span<const std::byte> bytes);
  void commit(Durability = Durability::disk) override;
  /// The same, but leaves a file alone that is there already, and returns false.
  bool commit_new();

 private:
  void close(Durability);  ///< for writing; the lock stays, by another descriptor
  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
};

void write_own_file(const std::filesystem::path&, std::string_view text);

/// A regular file, or one that is not there yet, is an AtomicFile at the end of its links. What is
/// no regular file, and what a descriptor of this process leads to (/dev/stdout), stays what it is.
std::unique_ptr<OutputFile> open_given_file(const std::filesystem::path&);
void write_given_file(const std::filesystem::path&, std::string_view text);

/// Where the links of such a name end; nothing where it is written to as it is.
std::optional<std::filesystem::path> replaceable_file(const std::filesystem::path&);

/// Whether a regular file has that name itself, and no link.
bool is_own_file(const std::filesystem::path&);

/// A file without content in the place of whatever has the name, open to be written with further
/// flags of open(); -1 with errno.
int open_new(const std::filesystem::path&, int flags);

/// Makes a file, whole, where there is none; false where there is one, which is left alone. Of
/// several processes that try at once, one succeeds.
bool create_file(const std::filesystem::path&, std::string_view text);

/// Whether what a file holds already goes or stays.
enum class Begin { anew, append };

/// A file that grows by pieces, each with a single write() at its end, so that a killed program
/// leaves whole pieces. To append, what is no regular file is begun anew, too.
class GrowingFile {
 public:
  explicit GrowingFile(std::filesystem::path path, Begin = Begin::anew);
  void append(std::string_view bytes);
  void write_line(std::string line) { append(line += '\n'); }

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

/// Copies a file so that it is whole and on disk, or absent. Error(output).
void copy_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Cuts a file, on disk. Error(output).
void cut_file(const std::filesystem::path&, std::uint64_t size);

/// Proves that a file can be made in this folder, which need not be there, and leaves all as it
/// was. Error(output).
void try_folder(const std::filesystem::path&);

}  // namespace cputrain::system
