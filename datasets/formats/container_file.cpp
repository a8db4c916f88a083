#include "datasets/formats/container_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "core/error.h"

namespace cputrain::datasets {
namespace {

system::RegularFile opened(const std::string& path, const std::string& purpose) {
  try {
    return system::RegularFile(path);
  } catch (const std::runtime_error& error) {
    fail(ExitCode::data, fmt::format("'{}' {} ({}); check the path and its permissions", path,
                                     error.what(), purpose));
  }
}

}  // namespace

void fail_changed(const std::string& path, const std::string& what) {
  fail(ExitCode::data, fmt::format("'{}' has changed since it was opened: {} (its images are not "
                                   "those that were asked for); put the file back as it was",
                                   path, what));
}

ContainerFile::ContainerFile(const std::string& path, const std::string& purpose)
    : path_(path), file_(opened(path, purpose)) {}

void ContainerFile::check_unchanged() const {
  if (!file_.is_unchanged()) fail_changed(path_, "it was written into");
}

void ContainerFile::read(std::size_t offset, std::span<std::uint8_t> dst) const {
  try {
    file_.read_at(offset, std::as_writable_bytes(dst));
  } catch (const std::runtime_error& error) {
    fail_changed(path_, fmt::format("it {}", error.what()));
  }
}

void ContainerFile::for_each_piece(
    std::size_t offset, std::size_t bytes,
    const std::function<void(std::span<const std::uint8_t>)>& use) const {
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  std::vector<std::uint8_t> space(std::min(bytes, kPiece));
  for (std::size_t done = 0; done < bytes; done += kPiece) {
    const auto piece = std::span(space).first(std::min(kPiece, bytes - done));
    read(offset + done, piece);
    use(piece);
  }
}

std::uint32_t ContainerFile::checksum(std::size_t offset, std::size_t bytes) const {
  uLong sum = 0;
  for_each_piece(offset, bytes, [&](std::span<const std::uint8_t> piece) {
    sum = crc32_z(sum, piece.data(), piece.size());
  });
  return static_cast<std::uint32_t>(sum);
}

}  // namespace cputrain::datasets
