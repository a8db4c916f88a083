#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace cputrain::hdf5 {

/// A file within a zip archive that is stored as it is, which is how Keras writes its archives (the
/// format: PKWARE's APPNOTE.TXT, 4.3). Nothing where there is none of that name. Throws
/// std::runtime_error where the archive is damaged, or that file changed, compressed or encrypted.
std::optional<std::span<std::byte>> stored_member(std::span<std::byte> archive,
                                                  std::string_view name);

}  // namespace cputrain::hdf5
