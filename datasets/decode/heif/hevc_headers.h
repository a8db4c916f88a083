#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace cputrain::datasets {

/// What a NAL unit of HEVC is (ITU-T H.265, 7.4.2.2), as far as it matters here.
enum class NalKind { sequence, picture_parameters, other };

struct Nal {
  NalKind kind = NalKind::other;
  bool base_layer = false;  ///< others are left out, as of stereo pictures
};

/// Nothing for one that is shorter than its head.
std::optional<Nal> read_nal_head(std::span<const std::uint8_t> nal);

/// The size that a sequence parameter set claims, before its margins are cut off (7.3.2.2.1).
struct CodedSize {
  std::int64_t width = 0, height = 0;
};

/// Nothing where the set makes no sense or its margins leave nothing.
std::optional<CodedSize> read_coded_size(std::span<const std::uint8_t> nal);

}  // namespace cputrain::datasets
