#include "checkpoint/checksum.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "core/crc32c.h"

namespace cputrain::checkpoint {

std::uint32_t checksum_of(const system::RegularFile& file) {
  constexpr std::size_t kPiece = 1 << 20;
  std::vector<std::byte> piece(
      static_cast<std::size_t>(std::min<std::uintmax_t>(file.size(), kPiece)));
  std::uint32_t checksum = 0;
  for (std::uintmax_t done = 0; done < file.size(); done += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min<std::uintmax_t>(file.size() - done, kPiece)));
    file.read_at(done, piece);
    checksum = crc32c(piece, checksum);
  }
  return checksum;
}

}  // namespace cputrain::checkpoint
