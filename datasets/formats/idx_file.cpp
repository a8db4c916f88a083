#include "datasets/formats/idx_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "core/casts.h"
#include "core/error.h"

namespace cputrain::datasets {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 36;

[[noreturn]] void fail_file(const std::string& path, const std::string& problem) {
  fail(ExitCode::data, "'" + path + "': " + problem +
                           " (an IDX file must be exactly what its header says); fetch it again");
}

/// zlib reads plain files as they are.
class GzipFile {
 public:
  explicit GzipFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rbe")) {
    if (file_ == nullptr) fail_file(path_, std::string("cannot be opened: ") + strerror(errno));
    gzbuffer(file_, 1 << 18);
  }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;
  ~GzipFile() { gzclose(file_); }

  /// As many bytes as there are, at most `dst`.
  std::size_t read(std::span<std::uint8_t> dst) {
    const int got = gzread(file_, dst.data(), static_cast<unsigned>(dst.size()));
    int code = Z_OK;
    const char* words = gzerror(file_, &code);
    // Z_BUF_ERROR is a gzip stream that stops early: its bytes are used, their number is checked.
    if (got < 0 && code != Z_BUF_ERROR) {
      fail_file(path_,
                std::string("cannot be read: ") + (code == Z_ERRNO ? std::strerror(errno) : words));
    }
    return got < 0 ? 0 : to_size(got);
  }

 private:
  const std::string& path_;
  gzFile file_;
};

std::uint32_t big_endian(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(bytes[0]) << 24 | static_cast<std::uint32_t>(bytes[1]) << 16 |
         static_cast<std::uint32_t>(bytes[2]) << 8 | bytes[3];
}

std::vector<std::size_t> read_extents(GzipFile& file, const std::string& path,
                                      std::size_t dimensions) {
  std::array<std::uint8_t, 16> header{};
  const auto used = std::span(header).first(4 + 4 * dimensions);
  if (file.read(used) != used.size()) fail_file(path, "the file ends within its header");
  const std::uint32_t magic = big_endian(used), wanted = 0x800 + static_cast<unsigned>(dimensions);
  if (magic != wanted) {
    fail_file(path, "its first four bytes are " + std::to_string(magic) + " instead of " +
                        std::to_string(wanted) + " (bytes in " + std::to_string(dimensions) +
                        " dimensions)");
  }
  std::vector<std::size_t> extents;
  for (std::size_t d = 0; d < dimensions; ++d)
    extents.push_back(big_endian(used.subspan(4 + 4 * d)));
  return extents;
}

}  // namespace

IdxArray read_idx(const std::string& path, std::size_t dimensions) {
  GzipFile file(path);
  IdxArray array;
  array.extents = read_extents(file, path, dimensions);
  std::size_t expected = 1;
  for (const std::size_t extent : array.extents) {
    if (__builtin_mul_overflow(expected, extent, &expected) || expected > kMaxBytes) {
      fail_file(path, "its header claims more than " + std::to_string(kMaxBytes) + " bytes");
    }
  }
  // Piece by piece, so that memory follows what is there and not what the header claims.
  constexpr std::size_t kPiece = std::size_t{1} << 24;
  while (array.values.size() <= expected) {
    const std::size_t before = array.values.size();
    const std::size_t wanted = std::min(kPiece, expected + 1 - before);
    array.values.resize(before + wanted);
    const std::size_t got = file.read(std::span(array.values).subspan(before));
    array.values.resize(before + got);
    if (got < wanted) break;
  }
  if (array.values.size() != expected) {
    const bool fewer = array.values.size() < expected;
    fail_file(path, std::string(fewer ? "it holds only " : "it holds at least ") +
                        std::to_string(array.values.size()) + " bytes of data instead of " +
                        std::to_string(expected));
  }
  return array;
}

}  // namespace cputrain::datasets
