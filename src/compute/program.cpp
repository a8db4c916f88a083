#include "compute/program.h"

#include <numeric>

#include "core/hash.h"

namespace cputrain::compute {

std::uint64_t layout_fingerprint(const Program& program, Memory& memory) {
  constexpr std::size_t kLarge = std::size_t{1} << 22;
  const ParameterLayout& layout = program.layout();
  const OwnedArray owned(memory, layout.arena_size, layout.dtype);  // touched where it is written
  const Array& arena = owned.array();
  Fnv1a hash;
  for (std::size_t p = 0; p < layout.parameters.size(); ++p) {
    const Parameter& parameter = layout.parameters[p];
    hash.add(std::as_bytes(std::span(&parameter.range, 1)));
    if (parameter.count > kLarge) continue;
    std::vector<double> positions(parameter.count);
    std::iota(positions.begin(), positions.end(), 1.0);
    program.parameters().from_canonical(p, positions, arena);
    add_to_hash(hash, memory, arena.slice(parameter.range.begin, parameter.range.end));
  }
  return hash.value();
}

}  // namespace cputrain::compute
