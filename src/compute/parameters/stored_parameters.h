#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compute/memory.h"
#include "compute/parameters/parameter_format.h"
#include "compute/parameters/parameters.h"

namespace cputrain::compute {

/// A program's parameters: where they lie in arenas (weights, gradients, optimizer state), and
/// their way from and to the canonical layout. `parameter` indexes layout().parameters.
class StoredParameters {
 public:
  using Formats = std::vector<std::unique_ptr<ParameterFormat>>;

  /// A format for each parameter; without any, arenas hold canonical numbers of layout.dtype. The
  /// memory, where arenas lie, is borrowed.
  StoredParameters(ParameterLayout, Formats, Memory&);
  /// The same in arenas of another memory.
  StoredParameters in(Memory& memory) const;

  const ParameterLayout& layout() const { return layout_; }

  std::vector<double> to_canonical(std::size_t parameter, const Array& arena) const;
  /// The same as float32, as files have them. A dense layer may be half of a process's memory, so
  /// arenas of floats do not go by way of doubles.
  std::vector<float> to_canonical_floats(std::size_t parameter, const Array& arena) const;
  void from_canonical(std::size_t parameter, std::span<const double> values,
                      const Array& arena) const;
  /// The same, where arenas of floats need no second copy.
  void from_canonical(std::size_t parameter, std::span<const float> values,
                      const Array& arena) const;

 private:
  Array stored_part(std::size_t parameter, const Array& arena) const;

  ParameterLayout layout_;
  std::shared_ptr<const Formats> formats_;
  Memory* memory_;
};

}  // namespace cputrain::compute
