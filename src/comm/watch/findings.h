#pragma once

#include <span>
#include <vector>

#include "comm/pulse.h"
#include "comm/watch/limits.h"

namespace cputrain::watch {

/// What a rank says of itself.
struct Report {
  comm::Place place{};
  bool waits = false;  ///< it is in a call that ends when others have come
  bool deaf = false;   ///< nobody answers it
  double still = 0;    ///< seconds since it did anything that others may wait for
  double idle = 0;     ///< of these, the seconds since it used a CPU
};

/// What is known of a rank.
struct RankView {
  int rank = 0;
  Report last{};
  double silence = 0;     ///< seconds since that came
  bool heard = false;     ///< it ever came
  bool hidden = false;    ///< nobody of its host was ever heard: a firewall, perhaps
  bool finished = false;  ///< its work is done, and nobody waits for it

  double still() const { return last.still + silence; }
};

/// Why nobody gets further.
enum class Cause {
  none,
  silent,   ///< ranks that are stopped, or whose host or network is gone
  hung,     ///< ranks that answer and do nothing: storage, a lock
  slow,     ///< ranks that others wait for and that compute: no reason to end
  deaf,     ///< all wait, and words reach some ranks no more: a link that is cut in one direction
  hidden,   ///< all wait but those of whom nothing is known
  network,  ///< all wait and all answer: what travels between them was lost
};

struct Finding {
  Cause cause = Cause::none;
  std::vector<int> ranks{};  ///< that others wait for, ascending; empty where it is nobody's fault
  /// Where the first of them is; of silent ones, whose last word may be old, where the others wait;
  /// where it is nobody's fault, where all are.
  comm::Place place{};
  double seconds = 0;  ///< for how long nobody has got further
  bool ends = false;   ///< it has lasted for the time-out
};

/// Judges what is known of all ranks at one moment. A stall is when no rank has done anything for
/// the time of the warning.
Finding find_stall(std::span<const RankView>, const Limits&);

}  // namespace cputrain::watch
