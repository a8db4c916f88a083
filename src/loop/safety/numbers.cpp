#include "loop/safety/numbers.h"

#include <bit>
#include <cstdint>

namespace cputrain::loop {
namespace {

/// NaN and infinities have all bits of the exponent set. Whole numbers, so that the loop can be
/// done many values at once.
template <class Bits, Bits exponent, class T>
bool checked(std::span<const T> values) {
  bool bad = false;
  for (const T value : values) bad |= (std::bit_cast<Bits>(value) & exponent) == exponent;
  return !bad;
}

}  // namespace

bool all_numbers(std::span<const float> values) {
  return checked<std::uint32_t, 0x7f800000u>(values);
}

bool all_numbers(std::span<const double> values) {
  return checked<std::uint64_t, 0x7ff0000000000000u>(values);
}

bool all_numbers(compute::Memory& memory, const Array& array, comm::Communicator& communicator) {
  double bad = 0;
  compute::read_in_pieces(memory, array, [&](const Array& piece) {
    const bool numbers = piece.dtype == DType::f32
                             ? all_numbers(std::span<const float>(piece.as<float>()))
                             : all_numbers(std::span<const double>(piece.as<double>()));
    if (!numbers) bad = 1;
  });
  communicator.sum(Array::of<double>({&bad, 1}));
  return bad == 0;
}

}  // namespace cputrain::loop
