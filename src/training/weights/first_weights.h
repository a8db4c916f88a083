#pragma once

#include <string>

#include "weights/load.h"

/// What was taken of a weight file: a line for people, and a table of all arrays.
namespace cputrain::training {

/// "158 of 160 parameter arrays are those of FILE (PyTorch's layout, torchvision's names; 54
/// rearranged); left: ...".
std::string taken_text(const weights::WeightArrays&, const weights::LoadedWeights&,
                       const weights::ClassMatch&, const compute::ParameterLayout&,
                       const std::string& file);

/// CSV: a row for each parameter, then one for each array of the file that is none; what was done
/// with each.
std::string taken_table(const weights::WeightArrays&, const weights::LoadedWeights&,
                        const compute::ParameterLayout&);

}  // namespace cputrain::training
