#include "data/expand.h"

namespace cputrain::data {

std::string_view expand_name(Expand expand) {
  switch (expand) {
    case Expand::none:
      return "none";
    case Expand::six:
      return "six";
    case Expand::six_leaky:
      return "six-leaky";
  }
  return "none";
}

std::optional<Expand> expand_of(std::string_view name) {
  for (const Expand expand : {Expand::none, Expand::six, Expand::six_leaky}) {
    if (expand_name(expand) == name) return expand;
  }
  return std::nullopt;
}

}  // namespace cputrain::data
