#include "datasets/decode/decoders.h"

namespace cputrain::datasets {

Decoded decode_tiff(std::span<const std::uint8_t>, DecodingBudget::Claim&) {
  return refused(data::ReadStatus::unsupported,
                 "TIFF is not read (built without CPUTRAIN_TIFF); convert it to JPEG");
}

std::string tiff_library() { return {}; }

}  // namespace cputrain::datasets
