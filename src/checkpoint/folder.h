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

/// Reads every byte: empty for a whole checkpoint, else what is wrong, naming the file:
/// "optimizer.safetensors is 4,096 bytes long, not 8,192".
std::string fault_of(const std::filesystem::path& folder);

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

/// A new path in a run for what is written or removed: ".ckpt-000000120.tmp4711-99". It is hidden,
/// so that ckpt-* meets what is whole and nothing else.
std::filesystem::path new_aside(const std::filesystem::path& run, std::uint64_t step);

/// Gives a checkpoint another name, which is free; where the file system cannot rename it, it is
/// copied. Error(output).
void move_folder(const std::filesystem::path& from, const std::filesystem::path& to);

/// Removes a folder or a link to one. What cannot be removed stays.
void remove_folder(const std::filesystem::path&) noexcept;

}  // namespace cputrain::checkpoint
