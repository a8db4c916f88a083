#pragma once

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/dnnl_primitives.h"
#include "backends/cpu/kernels/bf16.h"
#include "backends/cpu/parameter_formats.h"
#include "compute/executor/op.h"
#include "system/clock.h"

namespace cputrain::cpu {

using compute::Activation;
using compute::Execution;
using compute::Op;
using compute::Source;

/// Whether an activation and its gradient are numbers of 16 bits (Bf16); else they are floats.
inline bool is_narrow(const Activation& activation) { return activation.element == sizeof(Bf16); }

/// What operators of this backend know besides when they are made.
struct CpuPlanning {
  const DnnlContext& dnnl;
  int threads;
  KernelChoice kernels;
};
struct Planning : compute::Planning, CpuPlanning {};

/// And when their memory is known, where they have the library's primitives.
struct DnnlBindings : compute::Bindings {
  const DnnlContext& dnnl;
};
using compute::Bindings;

/// Adds the time it lived to a total.
class TimeSpan {
 public:
  explicit TimeSpan(double& total) : total_(total) {}
  ~TimeSpan() { total_ += watch_.seconds(); }
  TimeSpan(const TimeSpan&) = delete;
  TimeSpan& operator=(const TimeSpan&) = delete;

 private:
  double& total_;
  system::Stopwatch watch_;
};

}  // namespace cputrain::cpu
