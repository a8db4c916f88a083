#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "system/placement/launcher.h"
#include "system/print.h"
#include "training/session/session.h"

namespace cputrain::training {
namespace {

/// Whether one of these ranks is lost. Asked ten times a second; looks once, and leaves a launcher
/// time to end all ranks by itself. `all`: the processes by rank.
std::function<bool()> loss_among(std::vector<int> ranks,
                                 std::vector<placement::ProcessIdentity> all, bool speaks) {
  return [ranks = std::move(ranks), all = std::move(all), speaks, lost = std::optional<int>(),
          since = system::Stopwatch()]() mutable {  // since the last look, or the loss
    constexpr double kBetweenLooks = 1, kPatience = 3;
    if (lost) return since.seconds() > kPatience;
    if (since.seconds() < kBetweenLooks) return false;
    since = {};
    for (const int rank : ranks) {
      if (!placement::is_gone(all[static_cast<std::size_t>(rank)])) continue;
      lost = rank;
      break;
    }
    if (lost && speaks) {
      system::tell("cputrain: rank {} has died: the others end (--on-failure shrink)", *lost);
    }
    return false;
  };
}

}  // namespace

std::shared_ptr<void> end_with_lost_ranks(const Session& session) {
  const auto own = placement::identity_of(::getpid());
  std::vector<placement::ProcessIdentity> all =
      comm::gather_values(*session.communicator, own.value_or(placement::ProcessIdentity{}));
  const std::vector<int>& ranks = session.nodes.own();
  const int rank = session.communicator->rank();
  const bool first = rank == ranks.front();
  std::vector<int> others;
  for (const int other : ranks) {  // the first one looks at all, and all at the first one
    if (other == rank || (!first && other != ranks.front())) continue;
    if (!placement::is_gone(all[static_cast<std::size_t>(other)])) others.push_back(other);
  }
  if (others.empty()) return nullptr;
  const bool speaks = first || (ranks.size() > 1 && rank == ranks[1]);
  const std::shared_ptr<void> watching = std::make_shared<bool>();
  session.services.signals->end_when(
      [watching = std::weak_ptr<void>(watching),
       is_lost = loss_among(std::move(others), std::move(all), speaks)] {
        return !watching.expired() && is_lost();
      },
      ExitCode::unanswered);
  return watching;
}

}  // namespace cputrain::training
