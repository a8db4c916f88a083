#pragma once

#include <memory>

#include "comm/pulse.h"
#include "comm/watch/findings.h"
#include "comm/watch/limits.h"

namespace cputrain::watch {

/// What a rank reports of itself, from its pulse and the CPU time that it uses. Of the watch's
/// thread.
class OwnAccount {
 public:
  OwnAccount(std::shared_ptr<comm::Pulse>, const Limits&);
  /// `now` in seconds of a clock that does not go back.
  Report look(double now);

 private:
  void look_at_cpu(double now);

  std::shared_ptr<comm::Pulse> pulse_;
  const double sample_;
  std::uint64_t moves_ = 0;
  double since_ = 0, busy_ = 0, sampled_ = 0, process_ = 0, working_ = 0;
};

}  // namespace cputrain::watch
