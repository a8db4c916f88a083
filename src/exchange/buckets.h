#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "compute/device_sums.h"
#include "core/array.h"

namespace cputrain::exchange {

/// Elements of the longest one.
std::size_t longest_bucket(const std::vector<std::size_t>& ends);

/// Reduces buckets one after the other, in one order on all ranks.
class Buckets {
 public:
  /// Reduces gradients that are final behind `after`; null: already.
  using Reduce = std::function<void(Range, compute::Event* after)>;
  /// `ends` as bucket_ends() gives them. `overlap`: a thread that owns a core, and first calls
  /// `on_thread_start`, reduces a bucket as soon as backward has finished it; else the calling
  /// thread does, once all gradients are there.
  Buckets(std::vector<std::size_t> ends, Reduce reduce, bool overlap,
          std::function<void()> on_thread_start = {});
  ~Buckets();

  const std::vector<std::size_t>& ends() const { return ends_; }
  Range bucket(std::size_t i) const { return {i == 0 ? 0 : ends_[i - 1], ends_[i]}; }
  /// Gradients [0, n) are final behind `after`; null: already.
  void ready(std::size_t n, compute::Event* after);
  /// Returns when all buckets are reduced; ready() may then begin anew. Throws what reducing threw.
  void finish();

 private:
  void serve(const std::stop_token&);
  void reduce(std::size_t i);

  std::vector<std::size_t> ends_;
  Reduce reduce_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::size_t ready_ = 0;  ///< buckets that may be reduced
  std::size_t done_ = 0;
  std::vector<compute::Event*> after_;  ///< by bucket, where it is ready
  std::exception_ptr failure_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace cputrain::exchange
