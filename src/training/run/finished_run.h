#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "training/training.h"

/// A run that came to its end, and is asked for again by --resume auto. Of rank 0.
namespace cputrain::training {

/// Whether by the last line of metrics.jsonl the training ended by itself.
bool is_finished(const std::filesystem::path& folder);

/// Whether its last line is that of an end: the training was not killed.
bool has_ended(const std::filesystem::path& folder);

/// Whether such a run is at the end, too, that is asked for now. `checkpoint` is its last one, or
/// empty where it has left none.
bool is_at_its_end(const std::filesystem::path& folder, const std::filesystem::path& checkpoint,
                   const TrainingSpec&);

/// Error(usage) after a table where the run is of another training than the one that is asked for,
/// `identity`: nothing of that would be trained. Else prints what ended it.
void check_finished(const Session&, const std::filesystem::path& folder,
                    const std::filesystem::path& checkpoint, const TrainingSpec&,
                    const nlohmann::ordered_json& identity);

}  // namespace cputrain::training
