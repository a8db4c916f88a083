#include "scaling/tune/work_left.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "scaling/tune/suggestion.h"

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

WorkLeft& WorkLeft::then_rates(int steps, std::size_t images_of_step, double decoding_seconds) {
  rate_steps_ = steps;
  rate_images_ = images_of_step;
  decoding_seconds_ = decoding_seconds;
  return *this;
}

/// The last size stays in memory, and is no work by itself.
void WorkLeft::tried() {
  std::vector<std::size_t>& images = ladders_.front().images;
  images.erase(images.begin());
  if (images.size() == 1) images.clear();
}

void WorkLeft::climbed() { ladders_.erase(ladders_.begin()); }

double WorkLeft::placing_seconds(std::size_t images) const {
  return cost_.placing_seconds +
         cost_.warm_steps * cost_.image_seconds * static_cast<double>(images);
}

double WorkLeft::round_seconds(std::size_t images) const {
  const double step = cost_.image_seconds * static_cast<double>(images);
  return steps_of_round(step) * step;
}

/// The best size of a contest is not known; it takes no longer than the largest before.
double WorkLeft::ladder_seconds(const LadderLeft& ladder, bool begun) const {
  const std::vector<std::size_t>& images = ladder.images;
  if (images.empty()) return 0;
  double seconds = begun ? 0 : 2 * placing_seconds(images.front());  // it is placed twice
  if (images.size() == 1) {
    const double round = round_seconds(images.front());
    return seconds + usual_rounds(round, rounds_) * round;
  }
  for (std::size_t i = 1; i < images.size(); ++i) {
    const double round = round_seconds(images[i - 1]) + round_seconds(images[i]);
    seconds += placing_seconds(images[i]) + kMostRounds * usual_rounds(round, rounds_) * round;
  }
  return seconds;
}

double WorkLeft::most_seconds() const {
  double seconds = 0;
  for (const LadderLeft& ladder : ladders_) {
    seconds += ladder_seconds(ladder, &ladder == &ladders_.front());
  }
  if (rate_steps_ == 0) return seconds;
  const double step = cost_.image_seconds * static_cast<double>(rate_images_);
  return seconds + cost_.placing_seconds + decoding_seconds_ + rate_steps_ * step;
}

std::size_t WorkLeft::sizes_left() const {
  std::size_t left = 0;
  for (std::size_t i = 0; i < ladders_.size(); ++i) {
    const std::size_t images = ladders_[i].images.size();
    left += i == 0 && images > 0 ? images - 1 : images;
  }
  return left;
}

std::string WorkLeft::plan_text() const {
  std::vector<std::string> parts;
  for (const LadderLeft& ladder : ladders_) {
    const std::size_t sizes = ladder.images.size();
    parts.push_back(fmt::format("{}{} of --{}", sizes > 1 ? "up to " : "", counted(sizes, "size"),
                                ladder.flag));
  }
  std::string what = join(parts, ", then ");
  if (rate_steps_ > 0) {
    what += fmt::format("{}up to {} steps with growing learning rates",
                        parts.empty() ? "" : ", then ", rate_steps_);
  }
  return fmt::format(
      "Tuning: {}: at most about {}, by the first steps ({} images/s); longer where other work "
      "disturbs them",
      what, most_text(most_seconds()), rate_of_images(1 / cost_.image_seconds));
}

std::string WorkLeft::place_text() const {
  return fmt::format("[{}/{}] ", sizes_ - sizes_left(), sizes_);
}

std::string WorkLeft::left_text() const {
  const double seconds = most_seconds();
  return seconds > 0 ? fmt::format(" - at most {} left", most_text(seconds)) : "";
}

std::string most_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kFewMinutes = 90, kFewHours = 90;
  if (seconds < kFewMinutes) return fmt::format("{:.0f} s", std::ceil(seconds));
  if (seconds < kFewHours * kMinute) return fmt::format("{:.0f} min", std::ceil(seconds / kMinute));
  return fmt::format("{:.1f} h", std::ceil(10 * seconds / kHour) / 10);
}

}  // namespace cputrain::tune
