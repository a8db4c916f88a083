#pragma once

#include <cstddef>
#include <map>

#include "emulated/fibers.h"

namespace cputrain::emulated {

/// Deals out whole pages of a range of addresses, with at least one that is nobody's before and
/// behind each piece. It goes round the range, so that what was given back is used again late.
class AddressRange {
 public:
  static constexpr std::size_t kHuge = std::size_t{2} << 20;  ///< pieces as large begin there

  explicit AddressRange(std::size_t bytes) : bytes_(bytes) {}
  /// Where a piece of that many bytes begins; 0: there is no room. Multiples of pages.
  std::size_t take(std::size_t bytes);
  void give_back(std::size_t begin) { pieces_.erase(begin); }

 private:
  std::size_t room_from(std::size_t begin, std::size_t bytes) const;

  std::size_t bytes_;
  std::size_t next_ = kPageBytes;                ///< where the search begins
  std::map<std::size_t, std::size_t> pieces_{};  ///< bytes by beginning
};

}  // namespace cputrain::emulated
