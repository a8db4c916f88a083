#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/watch/beat.h"
#include "comm/watch/datagrams.h"
#include "comm/watch/team.h"

namespace cputrain::watch {

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
  /// This rank's work is done: a last word to all who know of it.
  void farewell();
  /// The job ends, to all who know of this rank.
  void pass_verdict(double grace);

  /// Observers see all ranks, others themselves and the observers. By rank.
  std::vector<RankView> views(double now) const;
  /// Whether that rank has said something lately.
  bool hears(int rank, double now) const;
  /// Whether nobody else is in a position to speak.
  bool speaks(double now) const;
  /// Whether this rank may end the job: who speaks, and who hears no observer.
  bool judges(double now) const;
  /// Seconds to wait for rank 0, which writes, before this rank ends; nothing where nobody has
  /// judged.
  const std::optional<double>& verdict() const { return verdict_; }

 private:
  struct Known {
    Report last{};
    std::optional<double> heard{};     ///< when its last word came
    std::optional<Address> from{};     ///< of its reports
    std::optional<std::size_t> way{};  ///< of its addresses, one that it answered by
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
