#include "comm/watch/findings.h"

#include <limits>

namespace cputrain::watch {
namespace {

/// Ranks by what they do; those that are finished are left out.
struct Sorted {
  std::vector<RankView> hidden, silent, hung, lacking, computing, waiting, deaf;
};

std::vector<RankView>& group_of(Sorted& sorted, const RankView& view, const Limits& limits) {
  if (view.hidden) return sorted.hidden;
  if (!view.heard || view.silence >= limits.silent_after()) return sorted.silent;
  if (!view.last.waits) {
    if (view.last.idle >= limits.hangs_after()) return sorted.hung;
    return view.last.lacks == Cause::none ? sorted.computing : sorted.lacking;
  }
  return view.last.deaf >= limits.silent_after() ? sorted.deaf : sorted.waiting;
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

/// Those that lack what the first of them lacks.
Finding naming_lack(const std::vector<RankView>& views) {
  const Cause lack = views.front().last.lacks;
  std::vector<RankView> alike;
  std::ranges::copy_if(views, std::back_inserter(alike),
                       [&](const RankView& view) { return view.last.lacks == lack; });
  return naming(lack, alike);
}

/// Ranks that wait, and may have had no time to find a message that has come.
std::vector<RankView> not_looking(const Sorted& sorted, const Limits& limits) {
  std::vector<RankView> found;
  for (const auto* group : {&sorted.waiting, &sorted.deaf}) {
    std::ranges::copy_if(*group, std::back_inserter(found), [&](const RankView& view) {
      return view.last.fair < limits.looked_enough();
    });
  }
  return found;
}

Finding cause_of(const Sorted& sorted, const Limits& limits) {
  if (!sorted.silent.empty()) {
    Finding finding = naming(Cause::silent, sorted.silent);
    const auto& others = sorted.waiting.empty() ? sorted.deaf : sorted.waiting;
    if (!others.empty()) finding.place = last_of(others).front().last.place;
    return finding;
  }
  if (!sorted.hung.empty()) return naming(Cause::hung, last_of(sorted.hung));
  if (!sorted.lacking.empty()) return naming_lack(last_of(sorted.lacking));
  const bool some_wait = !sorted.waiting.empty() || !sorted.deaf.empty();
  if (!some_wait) return {};
  if (!sorted.computing.empty()) return naming(Cause::slow, last_of(sorted.computing));
  std::vector<RankView> starved = not_looking(sorted, limits);
  std::erase_if(starved, [](const RankView& view) { return view.last.lacks == Cause::none; });
  if (!starved.empty()) return naming_lack(starved);
  if (!sorted.deaf.empty()) return naming(Cause::deaf, sorted.deaf);
  if (!sorted.hidden.empty()) return naming(Cause::hidden, sorted.hidden);
  Finding finding{.cause = Cause::network};
  finding.place = last_of(sorted.waiting).front().last.place;
  return finding;
}

/// Whether no rank goes on by itself, or may do so where no person sees it.
bool may_end(const Sorted& sorted, Cause cause) {
  return cause != Cause::none && !goes_on(cause) && sorted.computing.empty() &&
         sorted.lacking.empty() && sorted.hidden.empty();
}

/// What a rank that had no CPU could not do or say for a moment proves nothing: it must have been
/// so for the time-out.
bool is_proven(const Sorted& sorted, const Limits& limits) {
  const auto is_idle = [&](const RankView& view) { return view.idle() >= limits.timeout; };
  const auto is_deaf = [&](const RankView& view) { return view.last.deaf >= limits.timeout; };
  if (!std::ranges::all_of(sorted.hung, is_idle)) return false;
  if (!sorted.silent.empty()) return std::ranges::all_of(sorted.silent, is_idle);
  if (!sorted.hung.empty()) return true;
  return std::ranges::all_of(sorted.deaf, is_deaf) && not_looking(sorted, limits).empty();
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
  Finding finding = cause_of(sorted, limits);
  finding.seconds = still;
  finding.may_end = limits.timeout > 0 && may_end(sorted, finding.cause);
  finding.ends = finding.may_end && still >= limits.timeout && is_proven(sorted, limits);
  return finding;
}

}  // namespace cputrain::watch
