#include "data/exif.h"

namespace cputrain::data {

std::string_view exif_name(Exif exif) { return exif == Exif::apply ? "apply" : "ignore"; }

std::optional<Exif> exif_of(std::string_view name) {
  for (const Exif exif : {Exif::apply, Exif::ignore}) {
    if (name == exif_name(exif)) return exif;
  }
  return std::nullopt;
}

}  // namespace cputrain::data
