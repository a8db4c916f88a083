#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/node_arrays.h"
#include "comm/watch/beat.h"

namespace cputrain::watch {

/// Which ranks watch each other, and how they reach each other.
struct Team {
  std::uint64_t token = 0;  ///< this job's alone
  int rank = 0;
  std::vector<std::string> hosts{};               ///< by rank
  std::vector<int> nodes{};                       ///< by rank: which share a machine
  std::vector<std::vector<Address>> addresses{};  ///< by rank, as this one may reach it
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
    std::optional<double> heard{};     ///< when its last report came
    std::optional<Address> from{};     ///< where its reports come from
    std::optional<std::size_t> way{};  ///< the one of its addresses that it answered by
    bool finished = false;
  };

  std::vector<int> observers() const;
  void send_report(int observer, double now, Beat::Kind);
  void take(const Beat&, const Address& from, double now);
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
