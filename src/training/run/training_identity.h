#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "training/training.h"

namespace cputrain::training {

/// Where training_identity() keeps the weights that it begins with, which a resume need not name
/// again, nor have: where they are named and not there, it says so, and a run that began with some
/// is no other one for that.
inline constexpr const char* kFirstWeights = "weights";
inline constexpr const char* kNotThere = " (not there)";  ///< after their name
inline constexpr const char *kBackend = "backend", *kPrecision = "precision",
                            *kEvalEvery = "eval-every";

/// Which images are left out, since they are damaged; kNone for none.
inline constexpr const char *kDamaged = "damaged images", *kNone = "none";

/// The hash in a value that has one, "photos (0123456789abcdef)": what is elsewhere now has another
/// name and the same hash. All of another text.
std::string_view hash_or_text(std::string_view);

/// What a training is, by names that a person knows. All but the end, the backend and the precision
/// is what a resume may not change, since the rest of the training would be another one's. Threads,
/// ranks and what is logged are not in it. What only decoding shows is null before add_decoded().
/// The same on all ranks, but for the weights that the training starts with, which rank 0 reads.
/// Error(data) where they cannot be read.
nlohmann::ordered_json training_identity(const Training&);
/// Adds what decoding shows: which images are damaged. Once loaded.
void add_decoded(nlohmann::ordered_json& identity, const Training&);

}  // namespace cputrain::training
