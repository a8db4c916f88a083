#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "comm/watch/findings.h"

namespace cputrain::watch {

/// A word between two ranks of a job, in one datagram.
struct Beat {
  enum class Kind : std::uint32_t {
    report,    ///< to an observer: where its sender is
    farewell,  ///< the same, the last: its work is done
    answer,    ///< an observer's, to the sender of a report
    verdict    ///< the job ends
  };
  Kind kind = Kind::report;
  int rank = 0;           ///< the sender's
  std::uint32_t way = 0;  ///< by which of the observer's addresses a report went; answers repeat it
  double grace = 0;       ///< in a verdict: seconds to wait for rank 0, which writes
  Report report{};
};

inline constexpr std::size_t kBeatBytes = 88;

/// `token` is the job's own, which no other job's datagrams have. Numbers lie as in this machine's
/// memory: a host with another order of bytes has another token.
std::array<std::byte, kBeatBytes> to_bytes(const Beat&, std::uint64_t token);

/// Nothing where these are no beat of a job with that token and so many ranks: any process may send
/// to an open port.
std::optional<Beat> beat_of(std::span<const std::byte>, std::uint64_t token, int ranks);

}  // namespace cputrain::watch
