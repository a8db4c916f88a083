#include "backends/hdf5/zip_archive.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "system/zip_directory.h"

namespace cputrain::hdf5 {

std::optional<std::span<std::byte>> stored_member(std::span<std::byte> archive,
                                                  std::string_view name) {
  const system::ZipDirectory directory(
      archive.size(), [&](std::uint64_t offset, std::span<std::byte> dst) {
        std::ranges::copy(archive.subspan(offset, dst.size()), dst.begin());
      });
  const auto place = directory.stored(std::string(name));
  if (!place) return {};
  const auto content = archive.subspan(place->begin, place->size);
  // HDF5 has no checksums of its own in files of Keras: a changed number would be a weight.
  const auto* bytes = reinterpret_cast<const Bytef*>(content.data());
  if (crc32_z(0, bytes, content.size()) != place->checksum) {
    throw std::runtime_error(
        fmt::format("is damaged ({} has not the checksum that the archive has for it)", name));
  }
  return content;
}

}  // namespace cputrain::hdf5
