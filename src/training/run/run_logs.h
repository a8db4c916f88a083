#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "logging/reporters.h"
#include "training/training.h"

namespace cputrain::training {

/// All reporters of a training that is loaded: the terminal, the files of its folder, and the logs
/// that --log-format asks for. Silence on ranks other than 0. `place`: where the files of a
/// training that goes on were cut. Files are written by the queue.
std::unique_ptr<logging::RunReporter> make_reporter(const Training&,
                                                    const std::filesystem::path& folder,
                                                    const logging::LogPlace& place,
                                                    system::WriteQueue& logs);

/// What a thread that writes does first. It has the core of communication where there is one, which
/// waits most of the time; else any of this rank's.
std::function<void()> bind_writer(const Session&);

/// The steps that --timeline shows; none without it. Rank 0 begins the file, so that a wrong path
/// shows at once; Error(usage) where it is one of the run's own, or there already without
/// --overwrite.
loop::Timeline make_timeline(const Session&, const TrainingSpec&,
                             const std::filesystem::path& folder);

/// Writes the timeline of all ranks where there is one. Collective. Error(output).
void write_timeline(const Session&, const TrainingSpec&, const loop::Timeline&);

}  // namespace cputrain::training
