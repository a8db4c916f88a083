#pragma once

#include <cstdint>
#include <filesystem>

namespace cputrain::checkpoint {

/// Writes one checkpoint aside, then gives it its name.
class Writer {
 public:
  /// Makes the folder to write into. Error(output).
  Writer(std::filesystem::path run, std::uint64_t step);
  /// Without commit() nothing is left behind.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// For files to be made in, or links (link(2)) to some that are there.
  const std::filesystem::path& folder() const { return temporary_; }
  /// Checksums of all files into MANIFEST; all is on disk when it returns. A folder that is there
  /// already for the same step is replaced. Error(output).
  void commit();

 private:
  void take_place(const std::filesystem::path& folder);
  std::filesystem::path run_, temporary_;
  std::uint64_t step_;
  int manifest_ = -1;  ///< MANIFEST, locked: this writer lives
};

}  // namespace cputrain::checkpoint
