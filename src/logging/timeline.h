#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cputrain::logging {

/// Steps of a training, counted from 1, both included; none where `last` is 0.
struct StepRange {
  std::uint64_t first = 1, last = 0;
  bool contains(std::uint64_t step) const { return first <= step && step <= last; }
};

/// What this rank did and when, in the steps that somebody wants to see. Spans lie one behind the
/// other. Bounded: what comes behind kMost spans of all ranks together is counted
/// only.
class Timeline {
 public:
  static constexpr std::size_t kMost = 200'000;

  struct Span {
    const char* name;  ///< lives for ever
    std::uint64_t step;
    double begin;    ///< seconds of the monotonic clock
    double seconds;  ///< of it
  };

  /// Nothing is kept of other steps.
  explicit Timeline(StepRange steps, int ranks = 1)
      : steps_(steps), most_(kMost / static_cast<std::size_t>(ranks)) {}

  /// Spans until the next call are this step's, which counts from 1; the first begins now.
  void begin_step(std::uint64_t step);
  /// What began where the span before ended, and ends now. What took no time leaves no span.
  void ended(const char* name);

  const std::vector<Span>& spans() const { return spans_; }
  std::size_t lost() const { return lost_; }
  bool wanted() const { return steps_.last > 0; }

  /// Seconds of the monotonic clock, as spans have them.
  static double now();

 private:
  StepRange steps_;
  std::size_t most_;  ///< spans of this rank
  std::uint64_t step_ = 0;
  double end_ = 0;  ///< of the span before
  std::vector<Span> spans_;
  std::size_t lost_ = 0;
};

/// One rank's part of a timeline as text that another rank's timeline_json() reads; `offset` is
/// what its clock shows more than rank 0's, in seconds.
std::string timeline_text(const Timeline&, double offset);

/// Chrome's trace format (chrome://tracing, Perfetto): a process a rank, complete events in
/// microseconds of rank 0's clock from the first span on, the clocks' offsets in the metadata.
/// `texts` and `hosts` are by rank. Source: "Trace Event Format", Google, 2016.
std::string timeline_json(const std::vector<std::string>& texts,
                          const std::vector<std::string>& hosts);

}  // namespace cputrain::logging
