#include "emulated/address_range.h"

#include <iterator>

namespace cputrain::emulated {
namespace {

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

}  // namespace

std::size_t AddressRange::room_from(std::size_t begin, std::size_t bytes) const {
  const std::size_t alignment = bytes >= kHuge ? kHuge : kPageBytes;
  std::size_t at = round_up(begin, alignment);
  auto piece = pieces_.upper_bound(at);
  if (piece != pieces_.begin()) --piece;
  for (; piece != pieces_.end(); ++piece) {
    const std::size_t end = piece->first + piece->second + kPageBytes;
    if (end <= at) continue;
    if (at + bytes + kPageBytes <= piece->first) break;
    at = round_up(end, alignment);
  }
  return at + bytes + kPageBytes <= bytes_ ? at : 0;
}

std::size_t AddressRange::take(std::size_t bytes) {
  std::size_t begin = room_from(next_, bytes);
  if (begin == 0) begin = room_from(kPageBytes, bytes);
  if (begin == 0) return 0;
  pieces_[begin] = bytes;
  next_ = begin + bytes + kPageBytes;
  return begin;
}

}  // namespace cputrain::emulated
