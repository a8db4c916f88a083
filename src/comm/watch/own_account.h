#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/pulse.h"
#include "comm/watch/findings.h"
#include "comm/watch/limits.h"
#include "system/lost_time/shortage.h"

namespace cputrain::watch {

/// Where an account learns what this process lacks.
struct Surroundings {
  std::function<std::vector<system::ThreadState>()> threads;  ///< of this process
  std::function<bool()> launcher_stands;  ///< whether a signal has stopped what started the ranks
};
/// As the kernel shows them. A process that no launcher started has none.
Surroundings real_surroundings();

/// What a rank reports of itself, from its pulse, the CPU time that it uses, and what its threads
/// lack. Made by the working thread, for the watch's.
class OwnAccount {
 public:
  OwnAccount(std::shared_ptr<comm::Pulse>, const Limits&, Surroundings = real_surroundings());
  /// `now` in seconds of a clock that does not go back.
  Report look(double now);

 private:
  bool uses_cpu(double seconds);
  system::Shortage shortage(double seconds);
  Cause lack_of(const system::Shortage&, double seconds) const;
  void look_closer(double now);

  std::shared_ptr<comm::Pulse> pulse_;
  const double sample_;
  const Surroundings surroundings_;
  const int working_thread_;
  std::uint64_t moves_ = 0;
  double since_ = 0, busy_ = 0, fair_ = 0, sampled_ = 0, process_ = 0, working_ = 0;
  Cause lacks_ = Cause::none;
  std::vector<system::ThreadState> threads_{};  ///< at the last look; none while work gets on
};

}  // namespace cputrain::watch
