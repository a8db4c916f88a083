#pragma once

#include <atomic>
#include <memory>

#include "training/session/session.h"

namespace cputrain::training {

/// While it lives, this process ends with ExitCode::unanswered where a rank of its machine has died
/// or the first of them has: launchers may leave the others to wait for it. One that ends them is
/// quicker, and has the code of the rank that died.
class LostRanks {
 public:
  /// Collective. Of machines where processes do not see each other nothing is known.
  explicit LostRanks(const Session&);
  ~LostRanks() { all_is_done(); }
  LostRanks(const LostRanks&) = delete;
  LostRanks& operator=(const LostRanks&) = delete;

  /// From now on ranks may end; before something that all of them take part in.
  void all_is_done() { *watching_ = false; }

 private:
  std::shared_ptr<std::atomic<bool>> watching_ = std::make_shared<std::atomic<bool>>(true);
};

}  // namespace cputrain::training
