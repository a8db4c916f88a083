#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>

#include "core/casts.h"

/// The only place that starts threads in this backend. oneDNN uses the same OpenMP pool.
namespace cputrain::cpu {

/// While it lives, parallel regions that the calling thread starts (ours and oneDNN's) have
/// `threads` threads. OpenMP keeps this number per calling thread, so each entry into the backend
/// sets it again: ranks may be threads of one process.
class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
    omp_set_dynamic(0);  // with OMP_DYNAMIC a team may have fewer, for which oneDNN waits for ever
  }
  ~ThreadCount() { omp_set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

/// Pieces of work for each thread: so few that handing them out costs nothing, so many that cores
/// whose clocks differ end together.
constexpr std::size_t kPiecesPerThread = 16;

/// Calls f(i) for every i in [0, n), some in a row, by the next thread that is free.
template <class F>
void parallel_for(std::size_t n, const F& f) {
  const std::size_t pieces = kPiecesPerThread * to_size(std::max(1, omp_get_max_threads()));
  const std::size_t chunk = std::max<std::size_t>(1, n / pieces);
#pragma omp parallel for schedule(dynamic, chunk) if (n > 1)
  for (std::size_t i = 0; i < n; ++i) f(i);
}

/// Parts of some work that few images have: more than threads, so that they end together; one where
/// there is one thread.
inline std::size_t parts_for_threads() {
  const int threads = omp_get_max_threads();
  return threads > 1 ? 4 * to_size(threads) : 1;
}

/// Calls f(thread) once on every thread.
template <class F>
void on_each_thread(const F& f) {
#pragma omp parallel
  f(omp_get_thread_num());
}

/// Threads that a parallel region really has.
inline int team_size() {
  int size = 1;
#pragma omp parallel
#pragma omp single
  size = omp_get_num_threads();
  return size;
}

/// Calls f(i, thread) for every i in [0, n), each by the next thread that is free; threads count
/// from 0. For work of unknown size, whose result does not depend on the thread.
template <class F>
void parallel_tasks(std::size_t n, const F& f) {
#pragma omp parallel for schedule(dynamic) if (n > 1)
  for (std::size_t i = 0; i < n; ++i) f(i, to_size(omp_get_thread_num()));
}

/// Cuts [0, n) into one piece a thread, each a multiple of a cache line of floats but the last, and
/// calls f(begin, end). A thread gets the same part of all arrays of one length, whose pages may
/// then lie near it. Arrays too short to be worth waking the threads stay in one piece.
template <class F>
void parallel_ranges(std::size_t n, const F& f) {
  constexpr std::size_t kLine = 16, kWorthwhile = 1 << 14;
  const std::size_t pieces = n < kWorthwhile ? 1 : to_size(std::max(1, omp_get_max_threads()));
  const std::size_t piece = ((n + pieces - 1) / pieces + kLine - 1) / kLine * kLine;
#pragma omp parallel for schedule(static) if (pieces > 1)
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t begin = std::min(n, i * piece), end = std::min(n, begin + piece);
    if (begin < end) f(begin, end);
  }
}

}  // namespace cputrain::cpu
