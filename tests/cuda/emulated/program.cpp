#include <optional>

#include "core/error.h"
#include "emulated/run_state.h"
#include "emulated/shadow.h"
#include "emulated/source_line.h"

/// What the emulated device knows of the program that it runs in.
namespace cputrain::emulated {
namespace {

std::optional<bool>& announced() {
  static std::optional<bool> checked;
  return checked;
}
bool both = false;

bool within(const void* p, const void* begin, std::size_t bytes) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(p) -
                                  static_cast<const std::byte*>(begin)) < bytes;
}

}  // namespace

void announce_kernels(bool checked) {
  both = both || announced().value_or(checked) != checked;
  announced() = checked;
}

bool kernels_are_checked() {
  if (both) {
    fail(ExitCode::internal,
         "the program has checked and plain kernels (what the latter write would go unseen); link "
         "libraries of one kind");
  }
  return announced().value_or(false);
}

bool is_harmless(const void* p) {
  const KernelLaunch& launch = *run.launch;
  return within(p, &now, sizeof now) ||
         within(p, launch.arguments.data(), launch.arguments.size()) || is_constant_of_program(p);
}

}  // namespace cputrain::emulated
