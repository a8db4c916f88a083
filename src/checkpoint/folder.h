#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Checkpoints as folders of a run: `ckpt-<step>` with at least nine digits. A folder appears under
/// its name with everything in it, durable, or not at all; what is written aside is hidden and has
/// `.tmp` in its name: `.ckpt-<step>.tmp<process>-<number>`.
namespace cputrain::checkpoint {

inline constexpr const char* kManifestName = "MANIFEST";
inline constexpr const char* kModelName = "model.safetensors";
inline constexpr const char* kOptimizerName = "optimizer.safetensors";
inline constexpr const char* kRanksName = "ranks.safetensors";  ///< what each rank has of its own
inline constexpr const char* kStateName = "state.json";
inline constexpr const char* kBestName = "best.safetensors";

/// A folder of that name, whole or not.
struct Found {
  std::filesystem::path folder;
  std::uint64_t step;
};

std::filesystem::path folder_of(const std::filesystem::path& run, std::uint64_t step);

/// Those of a run, the newest first. None where the run's folder is missing or cannot be read.
std::vector<Found> list(const std::filesystem::path& run);

/// Removes all but the newest `keep` of the checkpoints that are not newer than `step`, each in one
/// move (first under a temporary name). Those that are newer are of steps that a resume has given
/// up, and go, too. Never throws: what cannot be removed stays.
void prune(const std::filesystem::path& run, std::uint64_t step, int keep) noexcept;

/// Gives a damaged checkpoint a name that is no checkpoint's, `damaged-ckpt-<step>`, so that it is
/// neither chosen nor pruned: what cannot be read today may be read tomorrow. Its new path; the old
/// one where it can be neither renamed nor copied.
std::filesystem::path set_aside(const Found&);

/// The newest whole one that a process left without its name gets it, where no whole one with a
/// name is as new: where names cannot be exchanged or moved, a kill or a full disk may leave it so,
/// or half a copy in its place, which is set aside. For a process that goes on with the run.
void give_name_back(const std::filesystem::path& run) noexcept;

/// Removes what killed processes left of folders that they were writing or removing.
void remove_abandoned(const std::filesystem::path& run) noexcept;

/// "ckpt-000000120".
std::string name_of(std::uint64_t step);

/// The step of a checkpoint's name, which is what name_of() makes of it.
std::optional<std::uint64_t> step_of(std::string_view name);

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
