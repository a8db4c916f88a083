#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "job/training_job.h"
#include "logging/reporters.h"

namespace cputrain::run {

/// What --log-format takes.
inline constexpr std::string_view kLogFormats[] = {"mlperf", "tf_cnn_benchmarks"};

/// Everything that hears of a training that is loaded: the terminal, the files of its folder, and
/// the logs that --log-format asks for. Silence on ranks other than 0. `place`: where the files of
/// a training that goes on were cut. Files are written by the queue.
std::unique_ptr<logging::Reporter> make_reporter(const job::TrainingJob&,
                                                 const std::filesystem::path& folder,
                                                 const logging::LogPlace& place,
                                                 system::WriteQueue& logs);

/// What a thread that writes does first. It has the core of communication where there is one, which
/// waits most of the time; else any of this rank's.
std::function<void()> bind_writer(const job::Session&);

/// The steps that --timeline shows; none without it. Rank 0 begins the file, so that a wrong path
/// shows at once; Error(usage) where it is one of the run's own, or there already without
/// --overwrite.
train::Timeline make_timeline(const job::Session&, const job::TrainingSpec&,
                              const std::filesystem::path& folder);

/// Writes the timeline of all ranks where there is one. Collective. Error(output).
void write_timeline(const job::Session&, const job::TrainingSpec&, const train::Timeline&);

}  // namespace cputrain::run
