#pragma once

#include <cstdint>
#include <vector>

namespace cputrain::loop {

/// Steps of a training, counted from 1, both included; none where `last` is 0.
struct StepRange {
  std::uint64_t first = 1, last = 0;
  bool contains(std::uint64_t step) const { return first <= step && step <= last; }
};

/// What this rank did and when, in the steps that --timeline asks for. Spans lie one behind the
/// other. Bounded: what comes behind kMost spans of all ranks together is only counted.
class Timeline {
 public:
  static constexpr std::size_t kMost = 200'000;

  struct Span {
    const char* name;  ///< lives for ever
    std::uint64_t step;
    double begin;    ///< seconds of the monotonic clock
    double seconds;  ///< its length
  };

  /// Nothing is kept of other steps.
  explicit Timeline(StepRange steps, int ranks = 1)
      : steps_(steps), most_(kMost / static_cast<std::size_t>(ranks)) {}

  /// The first span of this step, which counts from 1, begins now.
  void begin_step(std::uint64_t step, const char* name);
  /// The span ends, and the next one begins. What took no time leaves none.
  void next(const char* name);
  /// The last span ends.
  void end_step() { next(nullptr); }

  const std::vector<Span>& spans() const { return spans_; }
  std::size_t lost() const { return lost_; }
  bool wanted() const { return steps_.last > 0; }

  /// Seconds of the monotonic clock, as spans have them.
  static double now();

 private:
  StepRange steps_;
  std::size_t most_;  ///< spans of this rank
  std::uint64_t step_ = 0;
  const char* name_ = nullptr;  ///< the span that has begun
  double begin_ = 0;            ///< when it did
  std::vector<Span> spans_;
  std::size_t lost_ = 0;
};

}  // namespace cputrain::loop
