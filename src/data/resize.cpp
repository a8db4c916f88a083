#include "data/resize.h"

namespace cputrain::data {

std::string_view resize_name(Resize resize) {
  return resize == Resize::nearest ? "nearest" : "bilinear";
}

std::optional<Resize> resize_of(std::string_view name) {
  for (const Resize resize : {Resize::bilinear, Resize::nearest}) {
    if (name == resize_name(resize)) return resize;
  }
  return std::nullopt;
}

}  // namespace cputrain::data
