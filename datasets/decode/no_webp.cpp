#include "datasets/decode/decoders.h"

namespace cputrain::datasets {

Decoded decode_webp(std::span<const std::uint8_t>, DecodingBudget::Claim&) {
  return refused(data::ReadStatus::unsupported,
                 "WebP is not read (built without CPUTRAIN_WEBP); convert it to JPEG");
}

std::string webp_library() { return {}; }

}  // namespace cputrain::datasets
