#pragma once

#include <optional>
#include <string_view>

namespace cputrain::data {

/// Whether a photograph is read as viewers show it: cameras store what their sensor saw, and how to
/// turn it in an EXIF tag.
enum class Exif { apply, ignore };

/// "apply", "ignore": for flags and for the description in weight files.
std::string_view exif_name(Exif);
/// The inverse; nothing for another word.
std::optional<Exif> exif_of(std::string_view name);

}  // namespace cputrain::data
