#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace cputrain::training {
class Training;
}  // namespace cputrain::training

/// Why a flag that was given has no effect, as "without checkpoints, ..."; empty where it has one.
namespace cputrain::cli {

/// What follows from the flags of a training, of its measurement or its evaluation alone.
/// `backends`: several in a sweep.
std::string why_idle_in_training(const training::TrainingFlags&, const std::string& flag,
                                 const std::vector<std::string>& backends);
/// Where the flag is an option of a backend that does not compute here.
std::string why_idle_option(const training::TrainingFlags&, const std::string& flag,
                            const std::vector<std::string>& backends);

/// With these ranks, data and network, in addition. The training is compiled already.
std::string why_idle_in(const training::Training&, const std::string& flag);

/// "--keep 3 changes nothing without checkpoints, ...", one for each flag that was given, on the
/// command line or in a --config file, and has no effect. Those in the environment are meant for
/// many commands: nothing is said of them, nor of values in a file that hold without it, too. The
/// config.json of a run has such of all flags, none of which was given.
std::vector<std::string> idle_flags(const Options&,
                                    const std::function<std::string(const std::string&)>& reason);

}  // namespace cputrain::cli
