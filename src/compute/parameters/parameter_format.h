#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "compute/parameters/parameters.h"

namespace cputrain::compute {

/// How one parameter lies in an arena of floats: a converter between that and the canonical (Keras)
/// layout, on the host.
class ParameterFormat {
 public:
  virtual ~ParameterFormat() = default;
  virtual std::size_t stored() const = 0;            ///< elements in the arena, padding included
  virtual std::size_t panel() const { return 0; }    ///< as in Parameter
  virtual std::size_t columns() const { return 0; }  ///< as in Parameter
  virtual std::optional<Factors> factors() const { return std::nullopt; }  ///< as in Parameter
  /// Both spans have the parameter's elements, `stored` with its padding, which becomes zero.
  virtual void to_canonical(std::span<const float> stored, std::span<float> canonical) const = 0;
  virtual void from_canonical(std::span<const float> canonical, std::span<float> stored) const = 0;
};

}  // namespace cputrain::compute
