#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/node.h"
#include "comm/watch/findings.h"
#include "system/file_system.h"

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

/// Host and port are in the network's order of bytes.
sockaddr_in address_of(std::uint32_t host, std::uint16_t port);

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

  bool is_open() const { return port_ != 0; }
  std::uint16_t port() const { return port_; }  ///< in the network's order; 0: not open
  void close();

  void send(const sockaddr_in&, std::span<const std::byte>);
  /// The next one into `buffer`, if it is there. Its bytes: what did not fit is lost, and counts.
  std::optional<std::size_t> receive(std::span<std::byte> buffer, sockaddr_in& from);
  /// Until one is there, or for so many seconds.
  void wait(double seconds);

 private:
  system::Descriptor socket_;
  std::uint16_t port_ = 0;
};

/// Which ranks watch each other, and how they reach each other.
struct Team {
  std::uint64_t token = 0;  ///< this job's alone
  int rank = 0;
  std::vector<std::string> hosts{};                   ///< by rank
  std::vector<int> nodes{};                           ///< by rank: which share a machine
  std::vector<std::vector<sockaddr_in>> addresses{};  ///< by rank, as this one may reach it
  std::vector<int> processes{};  ///< by rank: as this one sees it in /proc; 0: not at all

  int size() const { return static_cast<int>(hosts.size()); }
  bool is_on_own_node(int other) const { return nodes[other] == nodes[rank]; }
  /// The observer beside rank 0: the first rank of another machine, else rank 1.
  int deputy() const;
  bool observes() const { return rank == 0 || rank == deputy(); }
  /// Whether it is the first of its machine's ranks that are no observers.
  bool is_first_of_node() const;
};

/// Collective. A rank whose socket is not open has no addresses.
Team gather_team(comm::Communicator&, const comm::NodeMap&, const Datagrams&);

/// Name of the thread that uses it, for ps, strace and other ranks.
inline constexpr const char* kThreadName = "watch";

/// What a rank knows of others by their words. Every rank reports to two observers, rank 0 and a
/// deputy, which answer: so they know of all, and all know of them. Times are seconds of the
/// caller's clock. Borrows team and socket.
class Lookout {
 public:
  Lookout(const Team&, Datagrams&, const Limits&);

  /// This rank's own report, to its observers.
  void report(Report, double now);
  /// Takes what has come, and answers.
  void listen(double now);
  /// This rank's work is done: a last report to all that know of it.
  void farewell();
  /// The job ends: a message to all that know of this rank.
  void pass_verdict(double grace);

  /// Observers see all ranks, others themselves and the observers. By rank.
  std::vector<RankView> views(double now) const;
  /// Whether that rank has reported lately.
  bool hears(int rank, double now) const;
  /// Whether this rank has to print: no other can.
  bool speaks(double now) const;
  /// Whether this rank may end the job: one that prints, and one that no observer reaches.
  bool judges(double now) const;
  /// Seconds to wait for rank 0, which writes, before this rank ends; nothing without a verdict.
  const std::optional<double>& verdict() const { return verdict_; }

 private:
  struct Known {
    Report last{};
    std::optional<double> heard{};      ///< when its last report came
    std::optional<sockaddr_in> from{};  ///< where its reports come from
    std::optional<std::size_t> way{};   ///< the one of its addresses that it answered by
    bool finished = false;
  };

  std::vector<int> observers() const;
  void send_report(int observer, double now, Beat::Kind);
  void take(const Beat&, const sockaddr_in& from, double now);
  void to_all(const Beat&);
  bool node_was_heard(int rank) const;
  RankView view(int rank, double now) const;

  const Team& team_;
  Datagrams& socket_;
  const double silent_after_;
  std::vector<Known> ranks_;
  Report own_{};
  std::optional<double> verdict_{};
};

}  // namespace cputrain::watch
