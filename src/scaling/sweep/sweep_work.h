#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/text.h"
#include "scaling/sweep/sweep_run.h"

/// Measuring the cells of a sweep, and collecting those that were measured elsewhere.
namespace cputrain::sweep {

/// How long the rest of a sweep will take, from what its beginning took. Cost is in any unit that
/// time grows with.
class TimeLeft {
 public:
  /// Something more is to be done.
  void expect(double cost) { left_ += cost; }
  /// A run of this cost took so many seconds; `settled` is what need not be done any more, which is
  /// more than its own cost where it failed.
  void spent(double seconds, double cost, double settled) {
    seconds_ += seconds;
    cost_ += cost;
    left_ -= settled;
  }
  /// "12:30"; empty where nothing is left.
  std::string text() const {
    constexpr double kRounding = 1e-9;
    const bool nothing = left_ <= kRounding * cost_ || cost_ <= 0;
    return nothing ? "" : eta_text(seconds_ / cost_ * left_);
  }

 private:
  double left_ = 0, seconds_ = 0, cost_ = 0;
};

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

// What is in the folder of a sweep whose cells were measured by tasks, or by hand from plan.txt.
// Nothing of it is taken from the machine that collects.

/// The cell with the figures of its run folders; command and reason are those of its task
/// (cell.json), else the command is that of plan.txt. Runs of another kind of machine than the
/// table's are left out, with their reason.
cells::Cell collected_cell(const SweepPlan&, const cells::Cell&,
                           const cells::CellMachine& of_table);

/// The plan's table without cells. Machine, date and commit are those of machine.json, which sweeps
/// and tasks write. Without it, the machine is that of most runs' environment.json, or empty where
/// nothing is known; date and commit are empty.
cells::CellTable collected_table(const SweepPlan&);

}  // namespace cputrain::sweep
