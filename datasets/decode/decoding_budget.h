#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>

#include "datasets/decode/limits.h"

namespace cputrain::datasets {

/// Bounds the bytes of images in decoding over all threads that share it: files, the working memory
/// of decoders and their pixels come to no more than the budget beside one image. Safe from any
/// thread.
///
/// The claim that was made first never waits, whatever it needs: it is the one image. Every other
/// waits until its bytes fit, and becomes the first in time. So claims may grow without a deadlock,
/// none waits for ever, and an image larger than the budget is decoded, too.
class DecodingBudget {
 public:
  explicit DecodingBudget(std::size_t bytes = kDecodingBytes) : budget_(bytes) {}
  DecodingBudget(const DecodingBudget&) = delete;
  DecodingBudget& operator=(const DecodingBudget&) = delete;

  /// The memory of one image, given back at the end of its scope. Used by one thread, which must
  /// not make a second one of the same budget meanwhile.
  class Claim {
   public:
    explicit Claim(DecodingBudget&);
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    /// Returns when `bytes` more may be allocated.
    void grow(std::size_t bytes);
    std::size_t bytes() const { return bytes_; }

   private:
    DecodingBudget& budget_;
    std::uint64_t number_;
    std::size_t bytes_ = 0;
  };

 private:
  const std::size_t budget_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t in_use_ = 0;  // guarded by mutex_, as are all below
  std::uint64_t next_ = 0;
  std::set<std::uint64_t> claims_;
};

}  // namespace cputrain::datasets
