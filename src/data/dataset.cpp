#include "data/dataset.h"

#include <fmt/format.h>

#include "core/error.h"

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

const std::uint8_t* ImageSet::ready(std::size_t i) const {
  if (stored) return nullptr;
  return filling ? filling->find(samples[i]) : pixels[i];
}

const std::uint8_t* ImageSet::pixels_of(std::size_t i, std::span<std::uint8_t> space) const {
  if (const std::uint8_t* there = ready(i)) return there;
  if (filling) return filling->decode(samples[i], space);
  const std::uint32_t shown = stored->view(samples[i]).image;
  const ReadResult result = stored->read(shown, kept(), stored->ready_form()->resize, space);
  if (result.status == ReadStatus::ok) return space.data();
  fail(ExitCode::data, fmt::format("image '{}' of the data has changed since it was first read: {} "
                                   "(it is not the one that was asked for); put its file back as "
                                   "it was",
                                   stored->name(shown), result.detail));
}

}  // namespace cputrain::data
