#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

/// An IPv4 address, host and port in the network's order of bytes.
struct Address {
  std::uint32_t host = 0;
  std::uint16_t port = 0;
  bool operator==(const Address&) const = default;
};

/// 127.0.0.1.
std::uint32_t this_machine();
/// Those of this machine's networks that are up, without that one.
std::vector<std::uint32_t> network_addresses();

/// A UDP socket that never waits. What is lost is lost: senders repeat.
class Datagrams {
 public:
  /// A port that is free, for datagrams from this machine alone, or from everywhere. Without a
  /// socket where the system gives none.
  explicit Datagrams(bool from_everywhere);
  ~Datagrams();
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;

  bool is_open() const { return port_ != 0; }
  std::uint16_t port() const { return port_; }  ///< in the network's order; 0: not open
  void close();

  void send(const Address&, std::span<const std::byte>);
  struct Received {
    Address from;
    std::size_t bytes = 0;  ///< what did not fit is lost, and counts
  };
  /// The next one into `buffer`, if it is there.
  std::optional<Received> receive(std::span<std::byte> buffer);
  /// Until one is there, or for so many seconds.
  void wait(double seconds);

 private:
  int socket_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace cputrain::watch
