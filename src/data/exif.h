#pragma once

#include "core/names.h"

namespace cputrain::data {

/// Whether a photograph is read as viewers show it: cameras store what their sensor saw, and how to
/// turn it in an EXIF tag.
enum class Exif { apply, ignore };
constexpr auto names(Exif) {
  return std::to_array<Name<Exif>>({{Exif::apply, "apply"}, {Exif::ignore, "ignore"}});
}

}  // namespace cputrain::data
