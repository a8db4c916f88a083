#pragma once

namespace cputrain::emulated {

/// Handles SIGSEGV, SIGBUS and SIGFPE from now on: those of kernels become faults of theirs, those
/// of the host that touches device memory are reported before they end the program.
void handle_signals();

/// While a kernel runs on this thread: its signals are handled on a stack of their own, since a
/// kernel's may be full.
class SignalsOfKernels {
 public:
  SignalsOfKernels();
};

}  // namespace cputrain::emulated
