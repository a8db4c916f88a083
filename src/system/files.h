#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

/// Writing so that a file is whole or absent: Error(output) says what could not be written.
namespace cputrain::system {

/// What commit() waits for. `process`: the file survives the death of this process, which is quick;
/// `disk`: a power cut, too.
enum class Durability { process, disk };

/// Removes what killed processes left of an AtomicFile of this path: files under its temporary
/// names that no process holds a lock of. Where the file system has no locks, those older than a
/// day.
void remove_abandoned(const std::filesystem::path&);

/// A file that grows under a temporary name and appears whole under its own with commit(). Without
/// commit() nothing is left behind; where the process is killed, the next AtomicFile of that path
/// clears up. The temporary file is locked until then, which tells others that its process lives.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Writes at a place of its own; write() goes on where it was.
  void write_at(std::size_t offset, std::span<const std::byte> bytes);
  void commit(Durability = Durability::disk);
  /// The same, but leaves a file alone that is there already, and says so with false.
  bool commit_new();

 private:
  void close(Durability);  ///< for writing; the lock stays, by another descriptor
  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
};

/// Whole or absent; what is no regular file (a pipe, a device) is written to as it is.
void write_file(const std::filesystem::path&, std::string_view text);

/// Makes a file, whole, where there is none; false where there is one, which is left alone. Of
/// several processes that try at once, one succeeds.
bool create_file(const std::filesystem::path&, std::string_view text);

/// Whether what a file holds already goes or stays.
enum class Begin { anew, append };

/// A file that grows by pieces, each with a single write() at its end, so that a killed program
/// leaves whole pieces.
class GrowingFile {
 public:
  explicit GrowingFile(std::filesystem::path path, Begin = Begin::anew);
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;
  void append(std::string_view bytes);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// One whole line after another.
class LineFile {
 public:
  explicit LineFile(std::filesystem::path path, Begin begin = Begin::anew)
      : file_(std::move(path), begin) {}
  void write_line(std::string line) { file_.append(line += '\n'); }

 private:
  GrowingFile file_;
};

/// Waits until what was written of a file, by whomever, is on disk. Error(output).
void sync_file(const std::filesystem::path&);

/// The same for the names in a folder, so that those that came and went by a rename survive a power
/// cut; an empty path is the current folder. Error(output).
void sync_folder(const std::filesystem::path&);

/// Error(output) with that errno and what to try.
[[noreturn]] void cannot_write(const std::filesystem::path&, int error);

/// Makes the folder and its parents. Error(output).
void make_folder(const std::filesystem::path&);

}  // namespace cputrain::system
