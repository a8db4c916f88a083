#pragma once

#include <utility>

#include "training/session/session.h"

namespace cputrain::tune {

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
