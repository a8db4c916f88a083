#include "checkpoint/schedule.h"

#include <algorithm>

namespace cputrain::checkpoint {
namespace {

constexpr double kMostOfTime = 0.01;
/// Copied, put into the files' form, summed up and written, by one thread: a low guess.
constexpr double kBytesPerSecond = 5e8;

}  // namespace

Schedule::Schedule(const Marks& marks, const loop::Progress& start, std::size_t bytes)
    : marks_(marks),
      last_step_(start.steps),
      last_epoch_(start.epochs),
      expected_(static_cast<double>(bytes) / kBytesPerSecond) {}

double Schedule::cost_so_far() const {
  const double known = kept_ + thread_;
  return writing_ ? std::max(known, before_ + expected_) : known;
}

bool Schedule::due(const loop::Progress& progress, double now) const {
  if (marks_.steps && progress.steps / *marks_.steps > last_step_ / *marks_.steps) return true;
  const bool wanted =
      (marks_.epochs && progress.epochs / *marks_.epochs > last_epoch_ / *marks_.epochs) ||
      (marks_.seconds && now - last_time_ >= *marks_.seconds);
  return wanted && cost_so_far() + expected_ <= kMostOfTime * now;
}

void Schedule::taken(const loop::Progress& progress, double now, double seconds) {
  if (!writing_) before_ = kept_ + thread_;
  kept_ += seconds;
  writing_ = true;
  last_step_ = progress.steps;
  last_epoch_ = progress.epochs;
  last_time_ = now;
}

void Schedule::written(double seconds_in_all) {
  thread_ = seconds_in_all;
  if (writing_) expected_ = kept_ + thread_ - before_;
  writing_ = false;
}

}  // namespace cputrain::checkpoint
