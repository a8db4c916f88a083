#pragma once

#include <string_view>

namespace cputrain::cli {

/// Sections of cputrain(1) that no table has, in the macros of man(7).
std::string_view man_description();   ///< DESCRIPTION
std::string_view man_surroundings();  ///< ENVIRONMENT, FILES, EXIT STATUS
std::string_view man_see_also();      ///< SEE ALSO

}  // namespace cputrain::cli
