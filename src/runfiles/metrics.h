#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

#include "loop/records.h"
#include "optim/learning_rate.h"

/// metrics.jsonl, which a training leaves in its run's folder: described once, for who writes it
/// and for all who read it.
namespace cputrain::runfiles {

/// A line of JSON for each step that is logged, each epoch, each start from a checkpoint, and the
/// end.
inline constexpr const char* kMetricsName = "metrics.jsonl";

/// What images came to. A loss that is NaN or infinite is null in the file, and NaN when it is
/// read; an accuracy beside it means nothing and is not known.
struct Figures {
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> accuracy{}, top_5_accuracy{};

  std::optional<double> finite_loss() const;
};

struct StepLine {
  std::uint64_t step = 0;  ///< from 1, over the whole training
  int epoch = 0;           ///< from 1
  std::uint64_t images = 0;
  std::optional<std::uint64_t> images_seen{};  ///< until then, over the whole training
  Figures figures{};
  double learning_rate = 0;
  std::optional<double> seconds{};
  bool skipped = false;  ///< without an update (--on-nan)
  bool trying = false;   ///< algorithms were tried during it
  bool nan = false;      ///< its loss was NaN or infinite, and it was not skipped
};

/// Whether an epoch's images went through the whole network, but for a few that are alike.
inline bool are_of_network(double images, double from_features) {
  return from_features * 10 < images || from_features == 0;
}

struct EpochLine {
  int epoch = 0;  ///< from 1
  std::size_t steps = 0;
  std::uint64_t images = 0;
  double seconds = 0;  ///< training alone
  Figures train{};
  std::optional<Figures> validation{}, averaged{};  ///< `averaged`: with averages of weights
  std::uint64_t validation_images = 0;              ///< 0: not known
  double validation_seconds = 0;
  double learning_rate = 0;  ///< its last step's
  std::optional<Budget> budget{};
  std::optional<loop::SettledSteps> settled{};
  std::optional<loop::Straggler> straggler{};
  TakenTime taken{};
  std::size_t skipped = 0;
  /// Images whose frozen layers were not computed, since what they make was kept.
  std::uint64_t from_features = 0;
  std::string kernels{};
  bool nan = false;  ///< one of its losses was NaN or infinite

  /// The validation's, where both are known and finite.
  std::optional<double> val_loss() const {
    return validation ? validation->finite_loss() : std::nullopt;
  }
  std::optional<double> val_accuracy() const {
    return val_loss() ? validation->accuracy : std::nullopt;
  }
  /// No step but the first, which is never settled, tried algorithms.
  bool is_settled() const { return settled && settled->steps + 1 >= steps; }
  bool is_of_network() const {
    return are_of_network(static_cast<double>(images), static_cast<double>(from_features));
  }
};

/// The training went on from a checkpoint.
struct ResumeLine {
  std::uint64_t step = 0;  ///< made before
  int epoch = 0;           ///< which goes on, from 1
  std::size_t made = 0;    ///< steps of that epoch
  int ranks = 0;
  std::string checkpoint{};
  std::string kernels{};
  std::vector<std::uint64_t> left_out{};  ///< steps that a rollback goes on without
  std::optional<double> lost_seconds{};   ///< since that checkpoint, by a training that died
};

/// Where the time of a process went, from its start until its results were on disk.
struct ProgramSeconds {
  double all = 0;
  double start_up = 0;  ///< until the first step
  double training = 0;
  double evaluation = 0;

  /// Checkpoints, weights, what a rollback makes again.
  double other() const { return all - start_up - training - evaluation; }
};

/// How the training ended: the file's last line, where it came to an end.
struct SummaryLine {
  bool interrupted = false;  ///< it was stopped, and can go on
  std::uint64_t steps = 0;
  int epochs = 0;
  std::optional<double> seconds{};
  double training_seconds = 0;
  /// The last epoch's.
  std::optional<Figures> train{}, validation{}, averaged{};
  int best_epoch = 0;  ///< 0: there is none, nor the next three
  double best_loss = 0;
  std::optional<double> best_accuracy{};
  optim::Monitor monitor = optim::Monitor::loss;
  bool early_stopped = false;
  std::optional<double> target_accuracy{};
  std::optional<loop::TimeToAccuracy> reached{};
  std::optional<double> density{};  ///< compute::density_of() of rank 0, at the end
  std::optional<std::uint64_t> peak_rank_bytes{}, peak_node_bytes{}, peak_device_bytes{};
  std::string weights_hash{}, weights{};
  ProgramSeconds program{};
  double checkpoint_seconds = 0;  ///< that steps waited for checkpoints
  std::string training{};         ///< what it was, a JSON object; empty: not known
};

/// Each as a line without its end.
std::string to_text(const StepLine&);
std::string to_text(const EpochLine&);
std::string to_text(const ResumeLine&);
std::string to_text(const SummaryLine&);

/// A file that may be hostile, cut off or missing. Where a training went back to an earlier
/// checkpoint, what came after that is left out.
struct Metrics {
  std::vector<StepLine> steps{};  ///< ascending; where they were asked for
  std::vector<EpochLine> epochs{};
  std::vector<ResumeLine> resumes{};
  std::optional<SummaryLine> summary{};  ///< where it is the last line
  std::optional<StepLine> last_step{};   ///< where no epoch and no resume came after it
  std::size_t lines = 0;                 ///< that could be read
  /// What could not be read; those lines are passed over.
  std::vector<std::string> troubles{};
};

/// Steps are passed over. Of a file of at most 4 GB, with at most 256 MB of other lines; lines of
/// at most 1 MB. `troubles` say what is larger.
Metrics read_metrics(const std::filesystem::path& file);
/// With its steps, of a file of at most 256 MB.
Metrics read_metrics_and_steps(const std::filesystem::path& file);

/// The same without a look at other lines; nothing where the last one is no summary.
std::optional<SummaryLine> summary_at_end(const std::filesystem::path& file);

/// Whether by its last line the training of a run's folder ended by itself.
bool is_finished(const std::filesystem::path& run);

}  // namespace cputrain::runfiles
