#include "tests/backends/backends_under_test.h"

namespace cputrain::testing {

std::vector<BackendUnderTest> cuda_backends_under_test() { return {}; }

}  // namespace cputrain::testing
