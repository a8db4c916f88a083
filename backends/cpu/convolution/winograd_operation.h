#pragma once

#include <optional>

#include "backends/cpu/dnnl_primitives.h"
#include "backends/cpu/winograd/tiles.h"

namespace cputrain::cpu {

/// As our Winograd kernels take it, if they do: a 3 x 3 convolution of stride 1.
std::optional<winograd::Problem> winograd_problem(const ConvolutionProblem&);

/// A convolution by Winograd's F(4x4, 3x3), for a problem that has one, by so many threads.
Operation winograd_operation(const ConvolutionProblem&, Direction, PostOp, int threads);

}  // namespace cputrain::cpu
