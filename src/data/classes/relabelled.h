#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"

namespace cputrain::data {

/// Gives the data these classes, in this order: labels are translated by name. It may lack some of
/// the classes. A class whose name looks like one of them alone is taken for it, with a warning.
/// Classes that have made-up names (name_of_nameless) and are as many as the data's, none of which
/// has such a name, are the data's in its order and take its names, with a warning.
/// Error(data) names those of its own that are not among them; one that no sample has does not
/// count.
void give_classes(DataSource&, std::vector<std::string> classes);

}  // namespace cputrain::data
