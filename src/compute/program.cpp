#include "compute/program.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/hash.h"

namespace cputrain::compute {

namespace {
constexpr std::size_t kLarge = std::size_t{1} << 22;  // floats tell such positions apart
}

std::uint64_t layout_fingerprint(const Program& program, Memory& memory) {
  const ParameterLayout& layout = program.layout();
  std::optional<OwnedArray> arena;  // touched where it is written
  Fnv1a hash;
  for (std::size_t p = 0; p < layout.parameters.size(); ++p) {
    const Parameter& parameter = layout.parameters[p];
    hash.add(std::as_bytes(std::span(&parameter.range, 1)));
    if (parameter.count > kLarge) continue;
    std::vector<float> positions(parameter.count);
    std::iota(positions.begin(), positions.end(), 1.0f);
    // Pages of the host that were touched are given back.
    if (!arena || memory.is_host()) arena.emplace(memory, layout.arena_size, layout.dtype);
    program.parameters().from_canonical(p, positions, arena->array());
    add_to_hash(hash, memory, arena->array().slice(parameter.range.begin, parameter.range.end));
  }
  return hash.value();
}

std::size_t layout_fingerprint_bytes(const ParameterLayout& layout) {
  std::size_t count = 0;
  for (const Parameter& p : layout.parameters) {
    if (p.count <= kLarge) count = std::max(count, p.count);
  }
  return count * (sizeof(float) + size_of(layout.dtype));
}

}  // namespace cputrain::compute
