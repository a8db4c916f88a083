#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scaling/sweep/sweep_run.h"
#include "scaling/sweep/time_left.h"

namespace cputrain::sweep {

/// Writes cells.json; whether it is another than before.
bool write_table(const SweepPlan&, const cells::CellTable&);

/// A sweep at work: its cells, what is known of them, and the file with it.
class SweepWork {
 public:
  SweepWork(const training::Services&, const SweepPlan&);

  /// Measures what is missing of some cells: a repeat of each, then the next repeat of each, so
  /// that a slow minute of the machine falls on none of them alone and there is a whole table after
  /// the first round. `retry`: what failed, too. False where a signal asked for a stop.
  bool measure(std::size_t first, std::size_t last, bool retry);

  bool write_table() const;

  bool works_alone = true;  ///< then the table is written after every cell
  bool measured_something = false;

 private:
  cells::Cell cell(std::size_t i) const;
  /// A task's own file, which no other task writes.
  void write_cell(std::size_t i) const;
  std::size_t runs_left(std::size_t i) const;
  /// Size of one run, in images by CPU: what takes time grows with it.
  double cost_of_run(std::size_t i) const;
  double cost_left(std::size_t i) const;
  /// In its round, or earlier where repeats were there already.
  bool measure_repeat(std::size_t i, int round);
  std::string why_not_measured(std::size_t i) const;
  /// "[3/8] 2 CPUs, batch 128"
  std::string place(std::size_t i) const;
  void log_run(std::size_t i, int repeat) const;

  const training::Services& services_;
  const SweepPlan& plan_;
  std::vector<CellState> states_;
  TimeLeft left_;
};

}  // namespace cputrain::sweep
