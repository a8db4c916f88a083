#include "compute/program.h"

#include <algorithm>
#include <numeric>

#include "core/hash.h"

namespace cputrain::compute {
namespace {
constexpr std::size_t kLarge = std::size_t{1} << 22;  // floats tell such positions apart
}

StoredParameters::StoredParameters(ParameterLayout layout, Formats formats, Memory& memory)
    : layout_(std::move(layout)),
      formats_(std::make_shared<const Formats>(std::move(formats))),
      memory_(&memory) {
  assert(formats_->empty() ||
         (formats_->size() == layout_.parameters.size() && layout_.dtype == DType::f32));
}

StoredParameters StoredParameters::in(Memory& memory) const {
  StoredParameters there = *this;
  there.memory_ = &memory;
  return there;
}

Array StoredParameters::stored_part(std::size_t parameter, const Array& arena) const {
  const Parameter& p = layout_.parameters[parameter];
  const std::size_t stored = formats_->empty() ? p.count : (*formats_)[parameter]->stored();
  return arena.slice(p.range.begin, p.range.begin + stored);
}

std::vector<double> StoredParameters::to_canonical(std::size_t parameter,
                                                   const Array& arena) const {
  if (formats_->empty()) return read_numbers(*memory_, stored_part(parameter, arena));
  const std::vector<float> canonical = to_canonical_floats(parameter, arena);
  return {canonical.begin(), canonical.end()};
}

std::vector<float> StoredParameters::to_canonical_floats(std::size_t parameter,
                                                         const Array& arena) const {
  if (formats_->empty()) {
    const std::vector<double> values = to_canonical(parameter, arena);
    return {values.begin(), values.end()};
  }
  const ParameterFormat& format = *(*formats_)[parameter];
  std::vector<float> canonical(layout_.parameters[parameter].count);
  const Array stored = stored_part(parameter, arena);
  if (memory_->is_host()) {
    format.to_canonical(stored.as<float>(), canonical);
    return canonical;
  }
  std::vector<float> copy(stored.size);
  memory_->read(stored.data, std::as_writable_bytes(std::span(copy)));
  format.to_canonical(copy, canonical);
  return canonical;
}

void StoredParameters::from_canonical(std::size_t parameter, std::span<const double> values,
                                      const Array& arena) const {
  if (formats_->empty()) return write_numbers(*memory_, values, stored_part(parameter, arena));
  from_canonical(parameter, std::vector<float>(values.begin(), values.end()), arena);
}

void StoredParameters::from_canonical(std::size_t parameter, std::span<const float> values,
                                      const Array& arena) const {
  assert(values.size() == layout_.parameters[parameter].count);
  const Array stored = stored_part(parameter, arena);
  if (formats_->empty()) {
    return write_numbers(*memory_, std::vector<double>(values.begin(), values.end()), stored);
  }
  const ParameterFormat& format = *(*formats_)[parameter];
  if (memory_->is_host()) return format.from_canonical(values, stored.as<float>());
  std::vector<float> copy(stored.size);
  format.from_canonical(values, copy);
  memory_->write(std::as_bytes(std::span(copy)), stored.data);
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
    read_in_pieces(memory, arena->array().slice(parameter.range.begin, parameter.range.end),
                   [&](const Array& piece) { hash.add(piece.bytes()); });
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
