#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/pulse.h"
#include "core/names.h"

namespace cputrain::watch {

/// How long, in seconds, others may be waited for.
struct Limits {
  double warning = 60;   ///< --stall warn: from then on it is printed
  double timeout = 600;  ///< --stall end: then the job ends; 0: never
  double start = 600;    ///< --stall start: until all ranks have met; 0: for ever

  /// A short time-out is announced before it comes.
  double warns_after() const { return timeout > 0 ? std::min(warning, timeout / 2) : warning; }
  /// Between two reports of a rank.
  double beat() const { return std::clamp(warns_after() / 10, 0.1, 1.0); }
  /// Without a CPU for so long, a rank that others wait for hangs.
  double hangs_after() const { return warns_after() / 2; }
  /// Whether it uses one is looked at so often.
  double sample() const { return hangs_after() / 3; }
  /// Ranks that wait have found every message that came once they had a CPU for so long.
  double looked_enough() const { return std::min(warns_after(), 10.0); }
  /// Without a word for so long, a rank is silent.
  double silent_after() const { return std::max(4 * beat(), 1.0); }
};

/// A stall is printed again so much later, as long as it lasts.
inline constexpr double kSayAgain = 60;

/// Why no rank gets further.
enum class Cause : std::uint8_t {
  none,
  silent,  ///< ranks that are stopped, or whose host or network is gone
  hung,    ///< ranks that answer and do nothing: storage, a lock
  // Ranks that go on as soon as they have what they lack: no reason to end.
  cpu,       ///< others have all CPUs, or a quota is used up
  memory,    ///< pages that were written to a disk are read back
  reader,    ///< who reads what they print: a paused terminal, a pager
  launcher,  ///< the one that started them is stopped, and so what MPI asks of it
  slow,      ///< ranks that others wait for and that compute: no reason to end
  deaf,    ///< all wait, and messages reach some ranks no more: a link that is cut in one direction
  hidden,  ///< all wait but those of which nothing is known
  network,  ///< all wait and all answer: what travels between them was lost
};

constexpr auto names(Cause) {
  return std::to_array<Name<Cause>>({{Cause::none, "none"},
                                     {Cause::silent, "silent"},
                                     {Cause::hung, "hung"},
                                     {Cause::cpu, "cpu"},
                                     {Cause::memory, "memory"},
                                     {Cause::reader, "reader"},
                                     {Cause::launcher, "launcher"},
                                     {Cause::slow, "slow"},
                                     {Cause::deaf, "deaf"},
                                     {Cause::hidden, "hidden"},
                                     {Cause::network, "network"}});
}
/// Whether ranks with it go on by themselves, as soon as they have what they lack.
constexpr bool goes_on(Cause cause) { return cause >= Cause::cpu && cause <= Cause::slow; }

/// What a rank reports of itself.
struct Report {
  comm::Place place{};
  bool waits = false;         ///< it is in a call that ends when others have come
  Cause lacks = Cause::none;  ///< or one of cpu to launcher
  double still = 0;           ///< seconds since it did anything that others may wait for
  double idle = 0;            ///< seconds of `still` since it used a CPU or lacked something
  double fair = 0;            ///< seconds of `still` in which it could find messages
  double deaf = 0;            ///< seconds since it got an answer
};

/// What is known of a rank.
struct RankView {
  int rank = 0;
  Report last{};
  double silence = 0;     ///< seconds since that came
  bool heard = false;     ///< it ever came
  bool hidden = false;    ///< no report ever came from its host: a firewall, perhaps
  bool finished = false;  ///< its work is done, and no rank waits for it

  double still() const { return last.still + silence; }
  double idle() const { return last.idle + silence; }
};

struct Finding {
  Cause cause = Cause::none;
  std::vector<int> ranks{};  ///< that others wait for, ascending; empty: no rank is at fault
  /// Where the first of them is. For silent ones, whose last report may be old, where the others
  /// wait; if no rank is at fault, where all are.
  comm::Place place{};
  double seconds = 0;    ///< for how long no rank has got further
  bool may_end = false;  ///< no rank goes on by itself, so the job ends once the time-out is over
  bool ends = false;     ///< it is
};

/// Judges what is known of all ranks at one moment. A stall is when no rank has done anything for
/// the time of the warning.
Finding find_stall(std::span<const RankView>, const Limits&);

inline constexpr const char* kStallsName = "stalls.jsonl";  ///< in a run's folder

}  // namespace cputrain::watch
