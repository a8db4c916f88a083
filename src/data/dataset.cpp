#include "data/dataset.h"

namespace cputrain::data {

std::string_view status_name(ReadStatus status) {
  switch (status) {
    case ReadStatus::ok:
      return "ok";
    case ReadStatus::unreadable:
      return "unreadable";
    case ReadStatus::empty:
      return "empty";
    case ReadStatus::not_an_image:
      return "not an image";
    case ReadStatus::truncated:
      return "truncated";
    case ReadStatus::too_large:
      return "too large";
    case ReadStatus::unsupported:
      return "unsupported";
  }
  return "unknown";
}

}  // namespace cputrain::data
