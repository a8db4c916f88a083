#include "backends/cpu/convolution/winograd_operation.h"

#include "backends/cpu/winograd/kernel_gradient.h"
#include "backends/cpu/winograd/pass.h"

namespace cputrain::cpu {
namespace {

using winograd::KernelGradient;
using winograd::Pass;

/// Null where the call has no such argument.
float* floats_of(const CallData& data, int name) {
  const auto found = data.find(name);
  return found == data.end() ? nullptr : static_cast<float*>(found->second);
}

std::byte* scratch_of(const CallData& data) {
  return static_cast<std::byte*>(data.at(DNNL_ARG_SCRATCHPAD));
}

template <class Kernel, class Run>
void set_own(Operation& operation, const Kernel& kernel, const Run& run) {
  operation.scratchpad = kernel.scratch_bytes();
  operation.own = [kernel, run](const CallData& data) { run(kernel, data); };
}

void set_forward(Operation& operation, const Pass& pass, bool relu) {
  set_own(operation, pass, [relu](const Pass& p, const CallData& data) {
    p.run(floats_of(data, DNNL_ARG_SRC), floats_of(data, DNNL_ARG_WEIGHTS),
          floats_of(data, DNNL_ARG_BIAS), relu, floats_of(data, DNNL_ARG_DST), scratch_of(data));
  });
}

void set_backward_data(Operation& operation, const Pass& pass) {
  set_own(operation, pass, [](const Pass& p, const CallData& data) {
    p.run(floats_of(data, DNNL_ARG_DIFF_DST), floats_of(data, DNNL_ARG_WEIGHTS), nullptr, false,
          floats_of(data, DNNL_ARG_DIFF_SRC), scratch_of(data));
  });
}

void set_backward_weights(Operation& operation, const KernelGradient& gradient) {
  set_own(operation, gradient, [](const KernelGradient& g, const CallData& data) {
    g.run(floats_of(data, DNNL_ARG_SRC), floats_of(data, DNNL_ARG_DIFF_DST),
          floats_of(data, DNNL_ARG_DIFF_WEIGHTS), floats_of(data, DNNL_ARG_DIFF_BIAS),
          scratch_of(data));
  });
}

}  // namespace

std::optional<winograd::Problem> winograd_problem(const ConvolutionProblem& p) {
  const winograd::Problem problem{p.images, p.src, p.dst, p.rows, p.columns};
  if (p.kernel != 3 || p.stride != 1 || p.groups != 1 || !problem.possible()) return std::nullopt;
  return problem;
}

Operation winograd_operation(const ConvolutionProblem& p, Direction direction, PostOp post_op,
                             int threads) {
  const winograd::Problem problem = winograd_problem(p).value();
  Operation operation;
  operation.implementation = "own Winograd";
  operation.weights = blocked_kernel_desc(p.src, p.dst);
  operation.src = activation_desc(p.src, p.images);
  operation.dst = activation_desc(p.dst, p.images);
  switch (direction) {
    case Direction::forward:
      set_forward(operation, Pass(problem, Pass::Way::forward, threads), post_op == PostOp::relu);
      break;
    case Direction::backward_data:
      set_backward_data(operation, Pass(problem, Pass::Way::backward_data, threads));
      break;
    case Direction::backward_weights:
      set_backward_weights(operation, KernelGradient(problem, threads));
      break;
  }
  return operation;
}

}  // namespace cputrain::cpu
