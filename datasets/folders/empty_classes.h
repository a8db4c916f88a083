#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "data/pipeline.h"

namespace cputrain::datasets {

/// A class of the data of which no image can be read.
struct EmptyClass {
  std::string name;
  std::string why;  ///< "its folder holds 12 .heic, 3 .txt"
};

/// "no image can be read of class 'cow' (its folder holds 12 .heic)", of the first few.
std::string describe_empty_classes(const std::vector<EmptyClass>&);

/// The one rule for such classes in training, whenever it is known that a class is empty. A class
/// without images cannot be learnt, and dropping it would change what the network answers:
/// Error(data) that names the classes. Where they are allowed they stay outputs of the network, and
/// a warning is returned. Empty without such classes.
std::string check_empty_classes(const std::vector<EmptyClass>&, bool allowed);

/// Classes of which training samples are listed and none is left after decoding. `left`: labels of
/// samples that could be read.
std::vector<EmptyClass> lost_classes(const data::Dataset&, std::span<const std::uint32_t> listed,
                                     const std::set<int>& left,
                                     const std::vector<data::BadSample>& bad);

}  // namespace cputrain::datasets
