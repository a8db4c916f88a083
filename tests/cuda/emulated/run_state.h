#pragma once

#include <optional>
#include <string>

#include "emulated/emulator.h"

/// The kernel that runs, for the emulator's own files.
namespace cputrain::emulated {

struct FaultOfKernel {
  std::string text;
  std::string line;  ///< empty: that of `pc`
  const void* pc = nullptr;
};

struct Run {
  const KernelLaunch* launch = nullptr;
  unsigned threads = 0, done = 0;  ///< of the block
  Context host = nullptr;
  std::optional<FaultOfKernel> fault;
};
extern Run run;

/// Begins a sequence of random choices.
void seed_threads(unsigned seed);

}  // namespace cputrain::emulated
