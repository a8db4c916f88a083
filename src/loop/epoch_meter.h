#pragma once

#include <optional>

#include "comm/communicator.h"
#include "loop/loop.h"
#include "system/lost_time.h"

namespace cputrain::loop {

/// Measures what an epoch loses on this rank: to other ranks, to others on its host, and to a
/// process that was stopped.
class EpochMeter {
 public:
  /// The options are borrowed.
  explicit EpochMeter(const LoopOptions&);

  void begin_step() { stopped_before_ = stopped(); }
  /// `waited`: seconds of the step in which this rank waited for others.
  void end_step(double waited);
  /// The epoch is over: what it lost, and its seconds and budgets as means over ranks, so that one
  /// line speaks for all of them. Collective.
  void finish(EpochRecord&, comm::Communicator&);

 private:
  double stopped() const { return options_.stopped_seconds ? options_.stopped_seconds() : 0; }

  const LoopOptions& options_;
  std::optional<system::StolenTime> stolen_;
  std::optional<system::CpuWait> cpu_wait_;
  double stopped_before_ = 0;  ///< seconds until the step that is made
  double waited_ = 0;          ///< seconds of its steps in which this rank was there and waited
};

}  // namespace cputrain::loop
