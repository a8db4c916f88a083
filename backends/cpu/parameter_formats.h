#pragma once

#include <memory>
#include <optional>

#include "backends/cpu/dnnl_primitives.h"
#include "compute/executor/memory_plan.h"
#include "compute/parameters/parameters.h"

namespace cputrain::cpu {

/// A convolution's kernel in any layout of the library, whose own reorder converts. `in`: channels
/// that it reads.
std::unique_ptr<compute::ParameterFormat> make_kernel_format(const dnnl::memory::desc& stored,
                                                             const model::Convolution&, int in);
/// (in, out) weights whose rows are permuted from the order height, width, channel to that in which
/// the source lies in memory; rows of channels that only fill a block are zero. `factors`: the
/// gradient's, where backward leaves it as such.
std::unique_ptr<compute::ParameterFormat> make_rows_format(
    const compute::SampleLayout& src, std::size_t out,
    std::optional<compute::Factors> factors = {});
/// A vector, stored as it lies.
std::unique_ptr<compute::ParameterFormat> make_vector_format(std::size_t size);

}  // namespace cputrain::cpu
