#include "scaling/tune/work_left.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "scaling/tune/ladder.h"

namespace cputrain::tune {

int steps_of_round(double step_seconds) {
  constexpr double kRoundSeconds = 0.25, kMost = 1000;
  return static_cast<int>(std::clamp(std::ceil(kRoundSeconds / step_seconds), 1.0, kMost));
}

int usual_rounds(double seconds, std::optional<int> asked) {
  if (asked) return *asked;
  constexpr double kSeconds = 8, kLeast = 3, kMost = 9;
  return static_cast<int>(std::clamp(std::ceil(kSeconds / seconds), kLeast, kMost));
}

double computed(double all, double there, double kept_features) {
  return all - kept_features * std::max(0.0, all - there);
}

void WorkLeft::tried(bool paid) {
  ++tried_;
  usual_done_ = ended_;
  in_vain_ = paid ? 0 : in_vain_ + 1;
}

void WorkLeft::climbed() {
  ladders_.erase(ladders_.begin());
  tried_ = 0;
  in_vain_ = 0;
  ended_ = usual_done_ = false;
}

double WorkLeft::placing_seconds(std::size_t images) const {
  return cost_.placing_seconds +
         cost_.warm_steps * cost_.image_seconds * static_cast<double>(images);
}

double WorkLeft::round_seconds(std::size_t images) const {
  const double step = cost_.image_seconds * static_cast<double>(images);
  return steps_of_round(step) * step;
}

double WorkLeft::contest_seconds(std::size_t images, std::size_t other, const Guess& guess) const {
  const double round = round_seconds(images) + round_seconds(other);
  return placing_seconds(images) + guess.rounds * usual_rounds(round, rounds_) * round;
}

std::size_t WorkLeft::contests_left(const LadderLeft& ladder, bool begun, bool most) const {
  const std::size_t done = begun ? std::max<std::size_t>(1, tried_) : 1;
  if ((begun && ended_) || done >= ladder.images.size()) return 0;
  const std::size_t left = ladder.images.size() - done;
  const int in_vain = begun ? in_vain_ : 0;
  const bool compared = begun && tried_ > 1;
  const int pay = compared ? (in_vain == 0 ? 1 : 0) : 2;
  const int likely = kPatience - in_vain + pay;
  return most && in_vain < kPatience ? left : std::min(left, static_cast<std::size_t>(likely));
}

/// The best size of a contest is not known; it takes no longer than the largest before.
double WorkLeft::ladder_seconds(const LadderLeft& ladder, bool begun, const Guess& guess) const {
  const std::vector<std::size_t>& images = ladder.images;
  const std::size_t done = begun ? tried_ : 0;
  double seconds = begun ? 0 : 2 * placing_seconds(images.front());  // it is placed twice
  if (images.size() == 1 && done == 0) {
    const double round = round_seconds(images.front());
    seconds += usual_rounds(round, rounds_) * round;
  }
  std::size_t next = std::max<std::size_t>(1, done);
  const std::size_t end = next + contests_left(ladder, begun, guess.most);
  for (; next < end; ++next) seconds += contest_seconds(images[next], images[next - 1], guess);
  if (ladder.usual && !(begun && usual_done_)) {
    seconds += contest_seconds(*ladder.usual, images[std::min(next, images.size()) - 1], guess);
  }
  return seconds;
}

double WorkLeft::seconds(const Guess& guess) const {
  double seconds = 0;
  for (const LadderLeft& ladder : ladders_) {
    seconds += ladder_seconds(ladder, &ladder == &ladders_.front(), guess);
  }
  if (rates_.steps == 0) return seconds;
  const std::size_t images = guess.most ? rates_.most_images : rates_.likely_images;
  const double all = static_cast<double>(images) * rates_.steps,
               there = static_cast<double>(rates_.there);
  return seconds + cost_.placing_seconds + rates_.decoding_seconds * std::min(all, there) +
         cost_.image_seconds * computed(all, there, guess.most ? 0 : rates_.kept_features);
}

double WorkLeft::likely_seconds() const {
  return seconds({.most = false, .rounds = (1.0 + kMostRounds) / 2});
}

double WorkLeft::most_seconds() const { return seconds({.most = true, .rounds = kMostRounds}); }

std::string WorkLeft::plan_text() const {
  constexpr double kNear = 1.5;
  std::vector<std::string> parts;
  for (const LadderLeft& ladder : ladders_) {
    const std::size_t sizes = ladder.sizes();
    parts.push_back(fmt::format("{}{} of --{}", sizes > 1 ? "up to " : "", counted(sizes, "size"),
                                ladder.flag));
  }
  if (rates_.steps > 0) {
    parts.push_back(fmt::format("up to {} steps with growing learning rates", rates_.steps));
  }
  const double likely = likely_seconds(), most = most_seconds();
  return fmt::format(
      "Tuning: {}: about {}{}, by the first steps; the line of each size says what is left",
      join(parts, ", then "), about_text(likely),
      most <= kNear * likely ? fmt::format(", at most {}", most_text(most)) : "");
}

std::string WorkLeft::place_text() const {
  const std::size_t sizes = ladders_.front().sizes();
  return fmt::format("[{} of {}{}] ", tried_, sizes > 1 ? "up to " : "", sizes);
}

std::string WorkLeft::left_text() const {
  const double seconds = likely_seconds();
  return seconds > 0 ? fmt::format(" - about {} left", about_text(seconds)) : "";
}

namespace {

/// `minutes` and so on are whole ones by this rule.
std::string time_text(double seconds, double (*whole)(double)) {
  constexpr double kMinute = 60, kHour = 3600, kFewMinutes = 90, kFewHours = 90;
  if (seconds < kFewMinutes) return fmt::format("{:.0f} s", std::max(1.0, whole(seconds)));
  if (seconds < kFewHours * kMinute) return fmt::format("{:.0f} min", whole(seconds / kMinute));
  return fmt::format("{:.1f} h", whole(10 * seconds / kHour) / 10);
}

}  // namespace

std::string about_text(double seconds) { return time_text(seconds, std::round); }
std::string most_text(double seconds) { return time_text(seconds, std::ceil); }

}  // namespace cputrain::tune
