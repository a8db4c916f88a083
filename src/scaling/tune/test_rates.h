#pragma once

#include <utility>

#include "scaling/tune/rate_curve.h"
#include "training/session/session.h"
#include "training/training.h"

namespace cputrain::tune {

/// Trains with a rate that grows at every step, until it is at its end or the loss diverges. The
/// training has started, and its weights are worth nothing afterwards. Its schedule and warm-up are
/// not asked. Losses are of all ranks, so every rank sees one curve. Error(data) where an image is
/// not the data's any more. Collective.
RateCurve test_rates(training::Training&, const RateRange&);

/// Silent while it lives: each training would say what its exchange is. Warnings are still told.
class Silence {
 public:
  explicit Silence(training::Session& session)
      : session_(session), before_(std::exchange(session.quiet, true)) {}
  ~Silence() { session_.quiet = before_; }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  training::Session& session_;
  bool before_;
};

}  // namespace cputrain::tune
