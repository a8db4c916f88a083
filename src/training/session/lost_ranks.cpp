#include "training/session/lost_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "system/placement/launcher.h"
#include "system/print.h"

namespace cputrain::training {
namespace {

struct Companion {
  int rank;
  placement::ProcessIdentity process;
};

/// Asked ten times a second; looks once, and leaves a launcher time to end all ranks by itself.
class Companions {
 public:
  Companions(std::vector<Companion> companions, bool speaks)
      : companions_(std::move(companions)), speaks_(speaks) {}

  bool one_is_lost() {
    constexpr double kBetweenLooks = 1, kPatience = 3;
    if (lost_) return since_.seconds() > kPatience;
    if (since_.seconds() < kBetweenLooks) return false;
    since_ = {};
    for (const Companion& companion : companions_) {
      if (!placement::is_gone(companion.process)) continue;
      lost_ = companion.rank;
      break;
    }
    if (lost_ && speaks_) {
      system::tell(
          fmt::format("cputrain: rank {} has died: the others end (--on-failure shrink)", *lost_));
    }
    return false;
  }

 private:
  std::vector<Companion> companions_;
  bool speaks_;
  std::optional<int> lost_{};
  system::Stopwatch since_{};  ///< the last look, or the loss
};

}  // namespace

LostRanks::LostRanks(const Session& session) {
  const auto own = placement::identity_of(::getpid());
  const auto all =
      comm::gather_values(*session.communicator, own.value_or(placement::ProcessIdentity{}));
  const std::vector<int>& ranks = session.nodes.own();
  const int rank = session.communicator->rank();
  const bool first = rank == ranks.front();
  std::vector<Companion> companions;
  for (const int other : ranks) {  // the first one looks at all, and all at the first one
    const auto& process = all[static_cast<std::size_t>(other)];
    if (other == rank || (!first && other != ranks.front())) continue;
    if (!placement::is_gone(process)) companions.push_back({other, process});
  }
  if (companions.empty()) return;
  const bool speaks = first || (ranks.size() > 1 && rank == ranks[1]);
  session.services.signals->end_when(
      [watching = watching_, others = Companions(std::move(companions), speaks)]() mutable {
        return *watching && others.one_is_lost();
      },
      ExitCode::unanswered);
}

}  // namespace cputrain::training
