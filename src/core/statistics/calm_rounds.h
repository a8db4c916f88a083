#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

namespace cputrain {

/// Rounds of a measurement on a machine whose host may spend its CPUs on other guests meanwhile
/// (system/lost_time.h). Disturbed rounds are measured again and left out, by what was stolen and
/// never by what came out. Where calm ones are too rare it gives up, and all count.
class CalmRounds {
 public:
  /// The part of a rank's CPU time that may be stolen in a calm round.
  static constexpr double kCalm = 0.02;

  /// `wanted`: calm rounds, at least one.
  explicit CalmRounds(int wanted) : wanted_(static_cast<std::size_t>(wanted)) {
    assert(wanted >= 1);
  }

  /// A round is over, in which this part, 0 to 1, was stolen; nothing: that is not known.
  void add(std::optional<double> stolen) {
    known_ = known_ && stolen;
    stolen_.push_back(stolen.value_or(0));
  }

  bool enough() const {
    const bool hopeless = calm() == 0 && measured() >= wanted_;
    return calm() >= wanted_ || hopeless || measured() >= kPatience * wanted_;
  }
  /// Too few for a median were calm: in as many rounds as it waits for, or in proportion.
  bool gave_up() const {
    const std::size_t few = std::min(wanted_, kFew);
    const std::size_t most = std::max(kPatience * wanted_, measured());
    return calm() * kPatience * wanted_ < few * most;
  }

  std::size_t measured() const { return stolen_.size(); }
  std::size_t counted() const { return gave_up() ? measured() : calm(); }
  std::size_t left_out() const { return measured() - counted(); }

  /// Those that belong to rounds that count, of the same number of values for each round.
  template <typename T = double>
  std::vector<T> counted_of(const std::vector<T>& values) const {
    const std::size_t each = values.size() / measured();
    assert(each * measured() == values.size());
    const bool all = gave_up();
    std::vector<T> chosen;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (all || is_calm(stolen_[i / each])) chosen.push_back(values[i]);
    }
    return chosen;
  }

  /// The part that was stolen, on average; nothing where that is not known.
  std::optional<double> stolen_of_all() const { return mean(stolen_); }
  std::optional<double> stolen_of_counted() const { return mean(counted_of(stolen_)); }

 private:
  static constexpr std::size_t kPatience = 3, kFew = 3;

  static bool is_calm(double stolen) { return stolen <= kCalm; }
  std::size_t calm() const {
    return static_cast<std::size_t>(std::ranges::count_if(stolen_, is_calm));
  }
  std::optional<double> mean(const std::vector<double>& parts) const {
    if (!known_ || parts.empty()) return std::nullopt;
    return std::accumulate(parts.begin(), parts.end(), 0.0) / static_cast<double>(parts.size());
  }

  std::size_t wanted_;
  bool known_ = true;
  std::vector<double> stolen_;
};

}  // namespace cputrain
