// Somebody else's library. Nothing of it may run: what it does when it is loaded ends the process.
#include <cstdlib>

namespace {
[[maybe_unused]] const bool ended = (std::_Exit(99), true);
}
