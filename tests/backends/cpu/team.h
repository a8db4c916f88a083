#pragma once

#include <omp.h>

namespace cputrain::cpu {

/// While it lives, parallel regions have so many threads; behind it, what they had before. (The
/// backend's ThreadCount is for files that are compiled with OpenMP.)
class Team {
 public:
  explicit Team(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~Team() { omp_set_num_threads(before_); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

 private:
  int before_;
};

}  // namespace cputrain::cpu
