#include "datasets/decode/decoders.h"

namespace cputrain::datasets {

Decoded decode_heif(std::span<const std::uint8_t> file, DecodingBudget::Claim&) {
  const char* name = format_of(file) == Format::avif ? "AVIF" : "HEIC";
  return refused(data::ReadStatus::unsupported,
                 std::string(name) +
                     ": this build reads none (it was made without CPUTRAIN_HEIF); convert it to "
                     "JPEG");
}

std::string heif_library() { return {}; }

}  // namespace cputrain::datasets
