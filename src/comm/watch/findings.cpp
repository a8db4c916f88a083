#include "comm/watch/findings.h"

#include <algorithm>
#include <limits>

namespace cputrain::watch {
namespace {

/// Ranks by what they do; those that are finished are left out.
struct Sorted {
  std::vector<RankView> hidden, silent, hung, computing, waiting, deaf;
};

std::vector<RankView>& group_of(Sorted& sorted, const RankView& view, const Limits& limits) {
  if (view.hidden) return sorted.hidden;
  if (!view.heard || view.silence >= limits.silent_after()) return sorted.silent;
  if (!view.last.waits)
    return view.last.idle < limits.hangs_after() ? sorted.computing : sorted.hung;
  return view.last.deaf ? sorted.deaf : sorted.waiting;
}

/// Ranks that are behind the others.
std::vector<RankView> last_of(const std::vector<RankView>& views) {
  const auto place = [](const RankView& view) { return view.last.place; };
  const auto least = std::ranges::min(views, {}, place).last.place;
  std::vector<RankView> last;
  std::ranges::copy_if(views, std::back_inserter(last),
                       [&](const RankView& view) { return view.last.place == least; });
  return last;
}

Finding naming(Cause cause, const std::vector<RankView>& views) {
  Finding finding{.cause = cause};
  for (const RankView& view : views) finding.ranks.push_back(view.rank);
  finding.place = views.front().last.place;
  return finding;
}

Finding cause_of(const Sorted& sorted) {
  if (!sorted.silent.empty()) {
    Finding finding = naming(Cause::silent, sorted.silent);
    const auto& others = sorted.waiting.empty() ? sorted.deaf : sorted.waiting;
    if (!others.empty()) finding.place = last_of(others).front().last.place;
    return finding;
  }
  if (!sorted.hung.empty()) return naming(Cause::hung, last_of(sorted.hung));
  const bool some_wait = !sorted.waiting.empty() || !sorted.deaf.empty();
  if (!some_wait) return {};
  if (!sorted.computing.empty()) return naming(Cause::slow, last_of(sorted.computing));
  if (!sorted.deaf.empty()) return naming(Cause::deaf, sorted.deaf);
  if (!sorted.hidden.empty()) return naming(Cause::hidden, sorted.hidden);
  Finding finding{.cause = Cause::network};
  finding.place = last_of(sorted.waiting).front().last.place;
  return finding;
}

}  // namespace

Finding find_stall(std::span<const RankView> views, const Limits& limits) {
  Sorted sorted;
  double still = std::numeric_limits<double>::infinity();
  for (const RankView& view : views) {
    if (view.finished) continue;
    group_of(sorted, view, limits).push_back(view);
    if (!view.hidden) still = std::min(still, view.still());
  }
  if (still < limits.warns_after() || still == std::numeric_limits<double>::infinity()) return {};
  Finding finding = cause_of(sorted);
  finding.seconds = still;
  const auto was_busy = [&](const RankView& view) { return view.last.idle < limits.timeout; };
  finding.ends = finding.cause != Cause::none && limits.timeout > 0 && still >= limits.timeout &&
                 sorted.computing.empty() && sorted.hidden.empty() &&
                 std::ranges::none_of(sorted.hung, was_busy);
  return finding;
}

}  // namespace cputrain::watch
