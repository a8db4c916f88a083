#include "tests/support/test_data.h"

#include <string>

namespace cputrain::testing {

std::ifstream test_data(std::string_view name) {
  return std::ifstream(CPUTRAIN_TESTS_FOLDER "/" + std::string(name));
}

}  // namespace cputrain::testing
