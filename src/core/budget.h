#pragma once

#include <array>
#include <optional>

namespace cputrain {

/// Where the seconds of a step or an epoch went on this rank. The parts add up to the time they
/// explain; `other` is what nothing else accounts for.
struct Budget {
  double input_wait = 0;  ///< waiting for the loader
  double forward = 0;
  double backward = 0;
  double allreduce_exposed = 0;  ///< communication that backward did not hide
  double straggler_wait = 0;     ///< waiting for the last rank to arrive
  double optimizer = 0;
  double other = 0;

  double known() const {
    return input_wait + forward + backward + allreduce_exposed + straggler_wait + optimizer;
  }

  Budget& operator+=(const Budget&);
};

struct BudgetPart {
  const char* name;  ///< in metrics.jsonl and cells.json
  double Budget::*seconds;
};
inline constexpr std::array<BudgetPart, 7> kBudgetParts{
    {{"input_wait", &Budget::input_wait},
     {"forward", &Budget::forward},
     {"backward", &Budget::backward},
     {"allreduce_exposed", &Budget::allreduce_exposed},
     {"straggler_wait", &Budget::straggler_wait},
     {"optimizer", &Budget::optimizer},
     {"other", &Budget::other}}};

inline Budget& Budget::operator+=(const Budget& b) {
  for (const BudgetPart& part : kBudgetParts) this->*part.seconds += b.*part.seconds;
  return *this;
}

inline Budget operator*(Budget b, double factor) {
  for (const BudgetPart& part : kBudgetParts) b.*part.seconds *= factor;
  return b;
}

/// Parts, 0 to 1, of the CPU time of a rank that others had: of the rank that lost most. Nothing
/// where it is not known.
struct TakenTime {
  /// Share of the time for which its threads wanted a CPU, and waited (system/lost_time.h).
  std::optional<double> cpu_wait{};
  /// Share of its CPUs' time that a virtual machine's host took (system/lost_time.h).
  std::optional<double> stolen{};
};
/// Their names in metrics.jsonl, cells.json and all other files.
inline constexpr const char *kCpuWait = "cpu_wait", *kStolen = "stolen";

}  // namespace cputrain
