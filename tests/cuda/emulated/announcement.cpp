#include "emulated/shadow.h"

/// Compiled with every library of kernels as its kernels are: so the emulated device knows whether
/// they report their accesses.
namespace cputrain::emulated {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kChecked = true;
#else
constexpr bool kChecked = false;
#endif
[[maybe_unused]] const bool announced = (announce_kernels(kChecked), true);

}  // namespace
}  // namespace cputrain::emulated
