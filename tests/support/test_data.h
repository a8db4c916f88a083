#pragma once

#include <fstream>
#include <string_view>

namespace cputrain::testing {

/// A file of the folder tests, such as "golden/updates.json". Programs know that folder from one
/// object file, so that the others are the same in every checkout, for ccache.
std::ifstream test_data(std::string_view name);

}  // namespace cputrain::testing
