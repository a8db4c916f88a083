#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "training/training.h"

namespace cputrain::training {

/// Where training_identity() keeps what ends the training (training/asked_end.h).
inline constexpr const char* kEnd = "end";
inline constexpr const char* kSaveBest = "save-best";  ///< within kEnd
/// And the weights that it begins with, which a resume need not name again, nor have: where they
/// are named and not there, it says so, and a run that began with some is no other one for that.
inline constexpr const char* kFirstWeights = "weights";

/// The name in the value of kFirstWeights, which has a hash, too.
std::string name_of_weights(const std::string& value);

/// What a training is, by names that a person knows. All but the end, the backend and the precision
/// is what a resume may not change, since the rest of the training would be another one's. Threads,
/// ranks and what is logged are not in it. What only decoding shows is null before add_decoded().
/// The same on all ranks, but for the weights that the training starts with, which rank 0 reads.
/// Error(data) where they cannot be read.
nlohmann::ordered_json training_identity(const Training&);
/// Adds what decoding shows: which images are damaged. Once loaded.
void add_decoded(nlohmann::ordered_json& identity, const Training&);

/// Whether the training of a checkpoint, whose facts these are, leaves out damaged images.
bool leaves_out_images(const nlohmann::ordered_json& facts);

/// What a training is compared with: a checkpoint that it would go on from, or a run that is at its
/// end, which has all that it will ever have.
enum class Compared { checkpoint, finished_run };

/// "batch: 48 in the checkpoint, 64 here", one for each name in which two differ and neither is
/// null.
std::vector<std::string> identity_differences(const nlohmann::ordered_json& then,
                                              const nlohmann::ordered_json& here, Compared);

/// "--backend cuda --precision bf16", which a resume may change; empty where it is not known.
std::string program_text(const nlohmann::ordered_json& identity);

}  // namespace cputrain::training
