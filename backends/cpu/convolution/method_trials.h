#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/convolution/convolution_choice.h"

namespace cputrain::cpu {

/// Seconds that one method took for a micro-batch.
struct MethodTimes {
  double forward = 0, weights = 0, data = 0;
  /// What the library does before either way back, once for both: it spreads the gradients of
  /// pooled maps, takes ReLU's, makes narrow copies.
  double unpool = 0;
};

/// Finds the quickest method for each direction: while training goes on, each has a few
/// micro-batches in turn, and what it computes is used like any other result.
class MethodTrials {
 public:
  static constexpr int kRounds = 3;  ///< the first of a candidate may touch new memory
  explicit MethodTrials(std::vector<ConvolutionMethod> candidates);

  bool running() const { return next_ < kRounds * candidates_.size(); }
  /// The next one to be timed.
  ConvolutionMethod candidate() const { return candidates_[next_ % candidates_.size()]; }
  /// Records what the candidate took and moves on to the next.
  void note(const MethodTimes&);
  void restart();
  void stop() { next_ = kRounds * candidates_.size(); }

  /// The best for each direction by the least that each took, unpooling included where any way
  /// back needs it.
  ConvolutionMethods best() const;

 private:
  std::vector<ConvolutionMethod> candidates_;
  std::vector<MethodTimes> least_;
  std::size_t next_ = 0;
};

/// One letter a direction; nothing for any other text.
std::string to_text(const ConvolutionMethods&);
std::optional<ConvolutionMethods> methods_of(std::string_view text);

}  // namespace cputrain::cpu
