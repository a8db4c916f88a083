#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/text.h"
#include "scaling/cells/run_figures.h"
#include "scaling/sweep/sweep_plan.h"

/// Measuring the cells of a sweep, and what is known of those that were measured.
namespace cputrain::sweep {

/// A cell's trainings by repeat: 1, 2, ...
using Runs = std::map<int, cells::RunFigures>;

/// What is known of a cell from its folder: its trainings until now.
struct CellState {
  Runs runs;            ///< repeats that came to their end
  int failed = 0;       ///< the first repeat that did not
  std::string failure;  ///< why, in words
  std::string foreign;  ///< which runs another kind of machine made, in words; empty for none
  /// How many there are still to be made.
  std::size_t left(const SweepPlan& plan) const {
    if (!failure.empty()) return 0;
    return static_cast<std::size_t>(std::max(0, plan.repeats - static_cast<int>(runs.size())));
  }
  /// The first repeat that is still to be made.
  int next() const {
    int repeat = 1;
    while (runs.contains(repeat)) ++repeat;
    return repeat;
  }
};

/// Reads run folders; one that is not whole counts as not there.
CellState state_of(const SweepPlan&, const cells::Cell&);

/// The cell with the figures of its trainings, or with the reason why there are none; else
/// `cannot`, why this machine cannot measure it, where that is known.
cells::Cell cell_with_figures(const SweepPlan&, const cells::Cell&, const CellState&,
                              const std::string& cannot, const std::string& command);

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

inline constexpr const char* kCellName = "cell.json";  ///< one cell's, beside its run folders

/// Empty where there is no such file.
std::string text_of(const std::filesystem::path&);
/// Leaves a file alone that holds the text already; whether it did not.
bool write_if_changed(const std::filesystem::path&, const std::string& text);
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
  /// "[3/8] 2 CPUs, batch 128"
  std::string place(std::size_t i) const;
  void log_run(std::size_t i, int repeat) const;

  const training::Services& services_;
  const SweepPlan& plan_;
  std::vector<CellState> states_;
  TimeLeft left_;
};

}  // namespace cputrain::sweep
