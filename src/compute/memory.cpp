#include "compute/memory.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "core/hash.h"

namespace cputrain::compute {
namespace {

template <class T>
std::vector<double> as_doubles(const Array& values) {
  const auto span = values.as<T>();
  return {span.begin(), span.end()};
}

template <class T>
void write_as(Memory& memory, std::span<const double> src, const Array& dst) {
  std::vector<T> values;
  for (const double value : src) values.push_back(static_cast<T>(value));
  memory.write(std::as_bytes(std::span<const T>(values)), dst.data);
}

/// NaN and infinities have all bits of the exponent set. Whole numbers, so that the loop can be
/// done many values at once.
template <class Bits, Bits exponent, class T>
bool checked(std::span<const T> values) {
  bool bad = false;
  for (const T value : values) bad |= (std::bit_cast<Bits>(value) & exponent) == exponent;
  return !bad;
}

}  // namespace

std::unique_ptr<system::SharedBlock> Memory::allocate(std::size_t bytes) {
  return std::make_unique<system::Pages>(bytes);
}

void Memory::copy(const void* src, void* dst, std::size_t bytes) {
  if (bytes > 0) std::memcpy(dst, src, bytes);
}

OwnedArray::OwnedArray(Memory& memory, std::size_t elements, DType dtype)
    : block_(memory.allocate(elements * size_of(dtype))),
      array_{block_->bytes().data(), elements, dtype} {}

std::size_t piece_elements(DType dtype) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  return kBytes / size_of(dtype);
}

void read_in_pieces(Memory& memory, const Array& array,
                    const std::function<void(const Array& piece)>& look) {
  if (array.size == 0) return;
  if (memory.is_host()) return look(array);
  const OwnedArray staged(host_memory(), std::min(array.size, piece_elements(array.dtype)),
                          array.dtype);
  for (std::size_t begin = 0; begin < array.size; begin += staged.array().size) {
    const Array src = array.slice(begin, std::min(array.size, begin + staged.array().size));
    const Array piece = staged.array().slice(0, src.size);
    memory.read(src.data, piece.bytes());
    look(piece);
  }
}

std::uint64_t hash_of(Memory& memory, const Array& array) {
  Fnv1a hash;
  read_in_pieces(memory, array, [&](const Array& piece) { hash.add(piece.bytes()); });
  return hash.value();
}

bool all_numbers(std::span<const float> values) {
  return checked<std::uint32_t, 0x7f800000u>(values);
}

bool all_numbers(std::span<const double> values) {
  return checked<std::uint64_t, 0x7ff0000000000000u>(values);
}

std::vector<double> read_numbers(Memory& memory, const Array& src) {
  std::vector<double> numbers;
  read_in_pieces(memory, src, [&](const Array& piece) {
    const auto part =
        piece.dtype == DType::f64 ? as_doubles<double>(piece) : as_doubles<float>(piece);
    numbers.insert(numbers.end(), part.begin(), part.end());
  });
  return numbers;
}

void write_numbers(Memory& memory, std::span<const double> src, const Array& dst) {
  assert(src.size() == dst.size);
  if (dst.dtype == DType::f64) return write_as<double>(memory, src, dst);
  write_as<float>(memory, src, dst);
}

std::unique_ptr<system::SharedBlock> Memory::staging(std::size_t bytes) {
  return host_memory().allocate(bytes);
}

Memory& host_memory() {
  static Memory memory;
  return memory;
}

}  // namespace cputrain::compute
