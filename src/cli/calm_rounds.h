#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace cputrain {

/// Rounds of a measurement on a machine whose host may spend its CPUs on others meanwhile
/// (core/stolen_time.h). Disturbed rounds are measured again and left out, by what was stolen and
/// never by what came out; where calm ones are too rare, all count, and the figure says so.
class CalmRounds {
 public:
  explicit CalmRounds(int wanted) : wanted_(static_cast<std::size_t>(wanted)) {}

  /// A round is over, in which this part of the CPUs' time, 0 to 1, was stolen.
  void add(double stolen) { stolen_.push_back(stolen); }

  /// As many as wanted were calm, or patience has come to its end.
  bool enough() const { return calm() >= wanted_ || stolen_.size() >= kPatience * wanted_; }

  bool counts(std::size_t round) const { return few_are_calm() || is_calm(stolen_[round]); }
  std::size_t measured() const { return stolen_.size(); }
  std::size_t counted() const { return few_are_calm() ? measured() : calm(); }
  std::size_t left_out() const { return measured() - counted(); }

  /// The values of the rounds that count.
  std::vector<double> of(const std::vector<double>& values) const {
    std::vector<double> chosen;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (counts(i)) chosen.push_back(values[i]);
    }
    return chosen;
  }

  /// The part that was stolen of all rounds, and of those that count.
  double stolen_of_all() const { return mean(stolen_); }
  double stolen() const { return mean(of(stolen_)); }

 private:
  /// Less than what repeats of a step differ by on a machine of one's own.
  static constexpr double kCalm = 0.02;
  static constexpr std::size_t kPatience = 3, kFew = 3;

  static bool is_calm(double stolen) { return stolen <= kCalm; }
  std::size_t calm() const {
    return static_cast<std::size_t>(std::ranges::count_if(stolen_, is_calm));
  }
  bool few_are_calm() const { return calm() < std::min(wanted_, kFew); }
  static double mean(const std::vector<double>& values) {
    return values.empty() ? 0
                          : std::accumulate(values.begin(), values.end(), 0.0) /
                                static_cast<double>(values.size());
  }

  std::size_t wanted_;
  std::vector<double> stolen_;
};

}  // namespace cputrain
