#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace cputrain::placement {

/// Words to be typed before the program to start as many `ranks` as `process` is one of: those of
/// the mpirun above it, where that is on this host and names the program; else "srun -n 4" below
/// Slurm's srun, and "mpirun -np 4". None for one rank. Variables are there without their values.
std::vector<std::string> launch_words(int ranks, pid_t process,
                                      const std::filesystem::path& proc = "/proc");

}  // namespace cputrain::placement
