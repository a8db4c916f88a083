#pragma once

#include <memory>
#include <optional>

#include "backends/cpu/dnnl_primitives.h"
#include "backends/cpu/kernels/sample_layout.h"
#include "compute/parameters.h"

namespace cputrain::cpu {

/// A converter between Keras' layout of one parameter and the stored one.
class ParameterFormat {
 public:
  virtual ~ParameterFormat() = default;
  virtual std::size_t stored() const = 0;  ///< floats
  virtual std::size_t panel() const = 0;   ///< as in Parameter
  virtual std::optional<compute::Factors> factors() const {
    return std::nullopt;
  }  ///< as in Parameter
  virtual void to_keras(const float* stored, float* keras) const = 0;
  virtual void from_keras(const float* keras, float* stored) const = 0;
};

/// A convolution's kernel in any layout of the library, whose own reorder converts.
std::unique_ptr<ParameterFormat> make_kernel_format(const dnnl::memory::desc& stored, int kernel,
                                                    int in, int out);
/// (in, out) weights whose rows are permuted from the order height, width, channel to that in which
/// the source lies in memory; rows of channels that only fill a block are zero. `factors`: of the
/// gradient, where backward leaves it as such.
std::unique_ptr<ParameterFormat> make_rows_format(const SampleLayout& src, std::size_t out,
                                                  std::optional<compute::Factors> factors = {});
/// As it is.
std::unique_ptr<ParameterFormat> make_vector_format(std::size_t size);

}  // namespace cputrain::cpu
