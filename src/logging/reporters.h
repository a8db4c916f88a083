#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compute/layer_time.h"
#include "loop/progress.h"
#include "runfiles/metrics.h"
#include "system/clock.h"
#include "system/files.h"
#include "system/usage/write_queue.h"

/// Reporters that write files open them when they are made. What comes later the queue writes,
/// which outlives them; without one it is written at once.
namespace cputrain::logging {

struct SummaryRecord {
  loop::TrainResult result{};
  std::optional<double> target_accuracy{};
  std::optional<double> best_accuracy{};  ///< of validation, in the best epoch
  std::optional<loop::PeakMemory> memory{};
  std::optional<double> density{};  ///< compute::density_of() of rank 0, at the end
  runfiles::ProgramSeconds program{};
  std::string weights_hash{};
  std::string weights_file{};
  double checkpoint_seconds = 0;  ///< that steps waited for checkpoints, in this process
  std::string training{};         ///< what it was, as the text of a JSON object; empty: not known
};

/// Where a training's logs go on that was there before: their files are cut at this place already.
/// With no steps made: they are begun anew.
struct LogPlace {
  loop::Progress progress{};  ///< the checkpoint's, and which steps it goes without now
  /// Since that checkpoint, where the training did not end by itself: all of it was in vain.
  std::optional<double> lost_seconds{};

  bool goes_on() const { return progress.steps > 0; }
  /// How its files are opened.
  system::Begin begin() const { return goes_on() ? system::Begin::append : system::Begin::anew; }
};

/// Hears of a whole run: of the loop, and how it began and ended.
class RunReporter : public loop::Reporter {
 public:
  /// Comes first, where a training goes on: with so many ranks now, from this checkpoint's folder.
  virtual void resumed(const LogPlace&, [[maybe_unused]] int ranks,
                       [[maybe_unused]] const std::string& checkpoint) {}
  virtual void summary(const SummaryRecord&) {}
};

/// Whether a log has begun. That of a training that goes on may be new all the same: it was not
/// asked for before.
bool has_lines(const std::filesystem::path&);

enum class Verbosity { silent = 0, bar = 1, lines = 2 };

/// Keras' `fit` lines on one stream: a bar with ETA that is redrawn, or one line an epoch; on the
/// other what is only for people, such as time that others took. `crowded`: the ranks have more
/// threads than there are CPUs.
std::unique_ptr<RunReporter> console_reporter(std::FILE* lines, std::FILE* notices, Verbosity,
                                              bool crowded = false);

// Its line with the bar, as long as the terminal is wide.

/// What of an epoch's steps a redrawn line tells. Texts begin with a blank; one may be empty.
struct BarLine {
  std::size_t step = 0, steps = 0;
  std::string time{};      ///< " - ETA: 12s"
  std::string loss{};      ///< " - loss: 0.1234"
  std::string accuracy{};  ///< " - accuracy: 0.5678"
};

/// 0.1234, or 1.2340e-04 where that would say little: as Keras prints figures.
std::string figure_text(double);

/// While steps are made. What gives way where the room is too small stands in one table in the
/// source: the bar shrinks, then accuracy goes, the bar, the loss; counter and time stay.
std::string running_line(const BarLine&, std::optional<std::size_t> space);

/// Behind the epoch: `values` are results, so all of them stay, and the bar alone gives way.
std::string finished_line(std::size_t step, std::size_t steps, const std::string& values,
                          std::optional<std::size_t> space);

/// A line on a stream every 30 s of training or evaluation (LogPace), for where no bar is drawn.
/// `now` is a clock in seconds.
std::unique_ptr<RunReporter> progress_reporter(
    std::FILE*, std::function<double()> now = system::steady_seconds);

/// Whether logs of steps have this one: every `log_every`th (0: none) and the last of each epoch,
/// so that short epochs have some, too.
inline bool is_logged(const loop::StepRecord& r, std::size_t log_every) {
  return log_every > 0 && (r.step % log_every == 0 || r.ends_epoch);
}

/// metrics.jsonl: one object a line; lines of the steps that are logged. The summary has
/// the figures of the last epoch in the file.
std::unique_ptr<RunReporter> json_lines_reporter(const std::filesystem::path&,
                                                 std::size_t log_every, const LogPlace& = {},
                                                 system::WriteQueue* = nullptr);

/// TensorBoard's event files under `folder`: train/ and validation/ with Keras' tags by epoch (from
/// 0), and batches' scalars of the steps that are logged. New files each time, since readers
/// merge those of a folder.
std::unique_ptr<RunReporter> tensorboard_reporter(const std::filesystem::path& folder,
                                                  const std::string& host, std::size_t log_every,
                                                  const LogPlace& = {},
                                                  system::WriteQueue* = nullptr);

/// Keras' CSVLogger: `epoch` (from 0) and the sorted names, a line an epoch; then the rate, then
/// figures of averaged weights. "NA" is what an epoch has not, though others may be evaluated, by
/// `validation` and with averages of the weights.
std::unique_ptr<RunReporter> csv_reporter(const std::filesystem::path&, bool validation = false,
                                          bool averaged = false, const LogPlace& = {},
                                          system::WriteQueue* = nullptr);

/// Keras' History as JSON: a list of figures a name; NaN is null. Whole after every epoch. Of a
/// training that goes on it begins with the epochs of `metrics`, the run's metrics.jsonl.
std::unique_ptr<RunReporter> history_reporter(const std::filesystem::path&,
                                              const std::filesystem::path& metrics = {},
                                              system::WriteQueue* = nullptr);

/// Where the time of training steps went, by layer and direction: at the end of a training a table
/// on the stream (none where it is null) and the same figures as JSON. `layers` answers what all
/// passes have taken until then; passes between epochs, which evaluate, are left out. Seconds are
/// those of the rank that asks.
std::unique_ptr<RunReporter> profile_reporter(
    std::function<std::vector<compute::LayerTime>()> layers, std::FILE*,
    const std::filesystem::path&);

/// What of a training its logs for others say once.
struct RunFacts {
  std::string model, data, platform, optimizer;
  std::string allreduce;  ///< as --allreduce names it; empty of one rank
  std::size_t batch = 0, train_images = 0, validation_images = 0;
  int ranks = 1;
  std::size_t steps = 0;     ///< in the whole training
  double epochs = 0;         ///< that these are
  double learning_rate = 0;  ///< the full one
  std::uint64_t seed = 0;
  double seconds_of_start = 0;  ///< from the session's start until now
};

/// MLPerf's ":::MLLOG" lines.
std::unique_ptr<RunReporter> mlperf_reporter(const std::filesystem::path&, const RunFacts&,
                                             const LogPlace& = {}, system::WriteQueue* = nullptr);

/// A log in another program's format: MLPerf's, or tf_cnn_benchmarks' lines of the first step that
/// counts and every so many. The word is that of --log-format.
struct LogFormat {
  std::string_view word;
  const char* file = nullptr;  ///< which grows in the run's folder; null: on the terminal
  /// Makes it in the run's folder.
  std::unique_ptr<RunReporter> (*make)(const std::filesystem::path& folder, const RunFacts&,
                                       const LogPlace&, std::size_t log_every,
                                       system::WriteQueue*) = nullptr;

  bool on_terminal() const { return !file; }
};

std::span<const LogFormat> log_formats();
std::vector<std::string> log_format_words();
std::vector<std::string> log_format_files();

/// Passes every record on, in order. None at all is silence: what ranks other than 0 get.
std::unique_ptr<RunReporter> all_of(std::vector<std::unique_ptr<RunReporter>>);

}  // namespace cputrain::logging
