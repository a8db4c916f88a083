#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace cputrain::data {

/// The data set with these classes, in this order: labels are translated by name. It may have some
/// of the classes only. Error(data) names those of its own that are not among them; one that no
/// sample has does not count.
std::unique_ptr<Dataset> with_classes(std::unique_ptr<Dataset>, std::vector<std::string> classes);

}  // namespace cputrain::data
