#include "datasets/decode/tiff/tag_values.h"

#include <array>

#include "core/casts.h"
#include "datasets/decode/byte_order.h"

namespace cputrain::datasets {
namespace {

using Bytes = std::span<const std::uint8_t>;

/// Bytes of a value, by its type (TIFF 6.0, section 2; BigTIFF's three at the end).
std::uint64_t bytes_of_type(std::uint64_t type) {
  constexpr std::array<std::uint8_t, 19> kBytes{0, 1, 1, 2, 4, 8, 1, 1, 2, 4,
                                                8, 4, 8, 4, 0, 0, 8, 8, 8};
  return type < kBytes.size() ? kBytes[to_size(type)] : 0;
}

}  // namespace

std::optional<TagValues> tag_values(Bytes file) {
  constexpr std::uint64_t kLargestNumber = 8;  // libtiff keeps some shorter ones in so many bytes
  const OrderedBytes numbers(file, file[0] == 'I');
  const bool big = numbers.at(2, 2) == 43;
  const std::size_t offset_bytes = big ? 8 : 4, count_bytes = big ? 8 : 2, entry = big ? 20 : 12;
  if (!numbers.are_there(big ? 8 : 4, offset_bytes)) return {};
  const std::uint64_t begin = numbers.at(big ? 8 : 4, offset_bytes);
  if (!numbers.are_there(begin, count_bytes)) return {};
  const std::uint64_t entries = numbers.at(begin, count_bytes), first = begin + count_bytes;
  if (entries > file.size() / entry || !numbers.are_there(first, entries * entry)) return {};
  TagValues values;
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t at = first + i * entry, place = at + 4 + offset_bytes;
    const std::uint64_t each = bytes_of_type(numbers.at(at + 2, 2));
    const std::uint64_t count = numbers.at(at + 4, offset_bytes);
    if (each == 0 || count <= offset_bytes / each) continue;  // unknown, or in the entry itself
    if (count > file.size()) return {};
    if (!numbers.are_there(numbers.at(place, offset_bytes), count * each)) return {};
    values.stored += count * each;
    values.read += count * (each + kLargestNumber);  // as stored, and turned into numbers
  }
  return values;
}

}  // namespace cputrain::datasets
