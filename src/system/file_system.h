#pragma once

#include <unistd.h>

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Folders, and what file systems lack: FUSE of all kinds, gVisor, SMB, overlayfs have no locks,
/// links, fsync or renames of folders. The work is then done without, or by other calls, and a line
/// says once what is lost. What failed (EIO, ENOSPC, EDQUOT, ...) is an Error(output).
namespace cputrain::system {

/// An open file, or what open() failed with (-1). Closed at the end of its scope, unless released.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

/// Whether that errno says that there is no such call here. Some say it by errors that elsewhere
/// mean a failure; a caller names those that can mean nothing else (`also`).
bool is_lacking(int error, std::initializer_list<int> also = {});

/// A warning, once for each call: "the file system of PATH has no CALL (Operation not supported):
/// LOST".
void do_without(std::string_view call, const std::filesystem::path&, int error,
                std::string_view lost);

/// As strerror(), with a text for ENOTSUPP, which the kernel should keep to itself.
std::string error_text(int error);

/// Error(output) with that errno and what to try.
[[noreturn]] void cannot_write(const std::filesystem::path&, int error);

/// sync_file() of one that is open.
void sync_open_file(int descriptor, const std::filesystem::path&);

/// Waits until what was written of a file, by whomever, is on disk. Error(output).
void sync_file(const std::filesystem::path&);

/// The same for the names in a folder, so that those that came and went by a rename survive a power
/// cut; an empty path is the current folder. Error(output).
void sync_folder(const std::filesystem::path&);

/// The path from the root, without ".", ".." and links in it as far as it exists ("link/.." is the
/// folder above the one that the link names); as it is where the working folder is gone.
std::string absolute_path(const std::string& path);

// What a path leads to, links included. What cannot be looked at is not there.

bool is_present(const std::filesystem::path&);
bool is_folder(const std::filesystem::path&);
bool is_file(const std::filesystem::path&);  ///< a regular one

/// Names in a folder, in any order; none where it cannot be read.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// What a small file holds, as far as it can be read: a process or a thread may end between the
/// opening of its file in /proc and the reading.
std::string text_in(const std::filesystem::path& file);

/// Makes the folder and its parents. Error(output).
void make_folder(const std::filesystem::path&);

/// A folder of ours in a folder of ours: not one that a link leads to. Error(output).
void make_own_folder(const std::filesystem::path&);

/// The same for a folder that no other process has made: FOLDER, or FOLDER-2, -3, ... Of several
/// processes that ask at once each gets its own. Error(output).
std::filesystem::path make_new_folder(const std::filesystem::path&);

}  // namespace cputrain::system
