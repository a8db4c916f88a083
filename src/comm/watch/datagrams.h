#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cputrain::watch {

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
