#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "system/placement/launcher_gone.h"

/// What launchers keep on disk while a job runs, below a folder for temporary files: Open MPI 4 in
/// ompi.HOST.USER/pid.N, N being mpirun's number, and on other hosts in .../jf.N, N being the
/// job's; Open MPI 5 in prterun.HOST.N.USER, on other hosts in prted.HOST.N.USER, and at first in
/// prte.HOST.USER/dvm.N, N being the number of the host's launcher or daemon. It stays where the
/// launcher is killed. MPICH's launcher keeps nothing there.
namespace cputrain::mpi {

/// Removes a session that a dead job has left word of, unless its launcher lives. Other folders
/// stay.
void remove_session(const std::filesystem::path& session,
                    const std::optional<placement::ProcessIdentity>& launcher,
                    const std::filesystem::path& proc = "/proc");

/// Removes this user's sessions below `base` that launchers of this machine left, where no process
/// has their number any more: also those that were killed before a rank could leave word. The
/// host's name in the folder's keeps machines apart that share a folder. A container that may share
/// one with its machine removes nothing, since it does not see all processes; `proc` shows them.
void remove_dead_sessions(const std::filesystem::path& base,
                          const std::filesystem::path& proc = "/proc");

/// Where launchers have put their sessions, by the environment; `variable` gives nullptr where one
/// is not set.
std::vector<std::filesystem::path> session_bases(
    const std::function<const char*(const char*)>& variable);

}  // namespace cputrain::mpi
