#include "training/run/run_logs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "runfiles/metrics.h"
#include "system/bounded_file.h"
#include "system/files.h"
#include "system/print.h"
#include "training/run/run_folder.h"

namespace cputrain::training {
namespace {

namespace fs = std::filesystem;

logging::Verbosity verbosity(const TrainingSpec& spec) {
  const int standard = system::screen_columns(STDOUT_FILENO) ? 1 : 2;
  return static_cast<logging::Verbosity>(std::min(spec.flags.verbose.value_or(standard), 2));
}

logging::RunFacts facts_of(const Training& training) {
  const Session& session = training.session();
  const TrainingSpec& spec = training.plan().spec;
  const auto& [plan, validation] = training.batches();
  return {.model = spec.model->name,
          .data = spec.flags.data_or_synthetic(),
          .platform = fmt::format("{}, {} of {}", session.machine.cpu_model,
                                  counted(session.communicator->size(), "rank"),
                                  counted(session.threads, "thread")),
          .optimizer = std::string(optim::rule_name(spec.optimizer.rule)),
          .allreduce = session.communicator->size() > 1 ? comm::to_text(spec.flags.allreduce) : "",
          .batch = spec.batch,
          .train_images = plan.samples(),
          .validation_images = validation.samples(),
          .ranks = session.communicator->size(),
          .steps = all_steps(plan, spec.epochs, spec.flags.steps),
          .epochs = data::training_epochs(plan, spec.epochs, spec.flags.steps),
          .learning_rate = optim::full_rate(spec.learning_rate),
          .seed = spec.seed,
          .seconds_of_start = session.since_start.seconds()};
}

/// Those that --log-format asks for.
std::vector<logging::LogFormat> formats_of(const TrainingSpec& spec) {
  std::vector<logging::LogFormat> formats;
  for (const logging::LogFormat& format : logging::log_formats()) {
    if (std::ranges::count(spec.flags.log_formats, format.word) > 0) formats.push_back(format);
  }
  return formats;
}

/// Whether what is there ends amid a line, which a line after it would be lost with.
bool is_cut_off(const fs::path& path) {
  try {
    const system::RegularFile file(path);
    std::byte last{'\n'};
    if (file.size() > 0) file.read_at(file.size() - 1, std::span(&last, 1));
    return last != std::byte{'\n'};
  } catch (const std::runtime_error&) {
    return false;  // no file yet, or none that is gone on with
  }
}

/// As it is called in the run's folder, which may move.
std::string weights_name(const fs::path& run, const std::string& weights) {
  std::error_code error;
  const fs::path name = fs::relative(weights, run, error);
  return error || name.empty() ? weights : name.string();
}

/// Those of run_files() that grow line by line; the others are written anew as a whole.
std::vector<std::string> growing_files() {
  std::vector<std::string> files = logging::log_format_files();
  files.insert(files.end(), {runfiles::kMetricsName, "training.csv"});
  return files;
}
constexpr std::string_view kEventFile = "events.out.tfevents.";

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int64_t>::max();

/// Sizes in bytes by the name in the run's folder.
using Sizes = std::map<std::string, std::uint64_t>;

bool is_log(std::string_view name) {
  if (std::ranges::count(growing_files(), name) > 0) return true;
  const auto slash = name.find('/');
  if (slash == name.npos) return false;
  const auto folder = name.substr(0, slash), file = name.substr(slash + 1);
  return std::ranges::find(kEventFolders, folder) != std::end(kEventFolders) &&
         file.starts_with(kEventFile) &&
         file.find_first_of(std::string_view("/\0", 2)) == file.npos;
}

/// A link or a pipe in the place of a log is not cut.
void add(Sizes& sizes, const fs::path& run, const std::string& name) {
  if (!is_log(name) || !system::is_own_file(run / name)) return;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(run / name, error);
  if (!error) sizes[name] = size;
}

Sizes logs_of(const fs::path& run) {
  Sizes sizes;
  for (const std::string& name : growing_files()) add(sizes, run, name);
  for (const char* folder : kEventFolders) {
    std::error_code error;
    if (fs::is_symlink(run / folder, error)) continue;
    for (const std::string& name : system::names_in(run / folder)) {
      add(sizes, run, std::string(folder) + "/" + name);
    }
  }
  return sizes;
}

[[noreturn]] void wrong(const std::string& what) {
  fail(ExitCode::data, "the checkpoint's lengths of logs are wrong: " + what +
                           " (cut there, they would lose lines); take another checkpoint");
}

Sizes checked(const nlohmann::ordered_json& marks) {
  if (!marks.is_object()) wrong("they are no object");
  Sizes sizes;
  for (const auto& [name, size] : marks.items()) {
    if (!is_log(name)) wrong(printable(name) + " is no log of a run");
    // A negative number is a very large one here.
    if (!size.is_number_integer() || size.get<std::uint64_t>() > kMostBytes) {
      wrong(printable(name) + " cannot be so long");
    }
    sizes[name] = size.get<std::uint64_t>();
  }
  return sizes;
}

/// The bytes of a text up to the end of its last whole line.
std::uint64_t whole_lines(const fs::path& path) {
  constexpr std::uint64_t kLongest = 1 << 20;  // bytes of a line
  const system::RegularFile file(path);
  const std::uint64_t begin = file.size() > kLongest ? file.size() - kLongest : 0;
  std::string end(file.size() - begin, '\0');
  file.read_at(begin, std::as_writable_bytes(std::span(end)));
  const auto last = end.rfind('\n');
  return last == end.npos ? begin : begin + last + 1;
}

}  // namespace

std::unique_ptr<logging::RunReporter> make_reporter(const Training& training,
                                                    const fs::path& folder,
                                                    const logging::LogPlace& place,
                                                    system::WriteQueue& logs) {
  const Session& session = training.session();
  const TrainingSpec& spec = training.plan().spec;
  const fs::path metrics = folder / runfiles::kMetricsName;
  if (!session.leads()) return logging::all_of({});
  logging::Verbosity shown = verbosity(spec);
  const std::vector<logging::LogFormat> formats = formats_of(spec);
  // Lines for programs need a line of their own, which a bar that is redrawn would not leave them.
  if (shown == logging::Verbosity::bar &&
      std::ranges::any_of(formats, &logging::LogFormat::on_terminal)) {
    shown = logging::Verbosity::lines;
  }
  const logging::RunFacts facts = facts_of(training);
  std::vector<std::unique_ptr<logging::RunReporter>> reporters;
  reporters.push_back(logging::console_reporter(stdout, stderr, shown, session.plan.crowding > 1));
  if (shown == logging::Verbosity::lines && !system::screen_columns(STDOUT_FILENO)) {
    reporters.push_back(logging::progress_reporter(stderr));
  }
  reporters.push_back(logging::json_lines_reporter(metrics, spec.flags.log_every, place, &logs));
  reporters.push_back(logging::tensorboard_reporter(folder, session.machine.host,
                                                    spec.flags.log_every, place, &logs));
  const bool evaluates = training.batches().validation.samples() > 0;
  reporters.push_back(logging::csv_reporter(folder / "training.csv", evaluates,
                                            evaluates && spec.flags.ema > 0, place, &logs));
  reporters.push_back(logging::history_reporter(folder / "history.json",
                                                place.goes_on() ? metrics : fs::path(), &logs));
  for (const logging::LogFormat& format : formats) {
    reporters.push_back(format.make(folder, facts, place, spec.flags.log_every, &logs));
  }
  if (spec.flags.profile) {
    reporters.push_back(logging::profile_reporter(
        [&program = *training.compiled().program] { return program.layer_times(); },
        shown == logging::Verbosity::silent ? nullptr : stderr, folder / kProfileName));
  }
  return logging::all_of(std::move(reporters));
}

void log_evaluation(const fs::path& file, const EvaluationFacts& facts) {
  const nlohmann::ordered_json line{{"date", facts.date},
                                    {"weights", weights_name(file.parent_path(), facts.weights)},
                                    {"data", facts.data},
                                    {"part", facts.part},
                                    {"images", static_cast<std::uint64_t>(facts.images)},
                                    {"loss", facts.loss},
                                    {"accuracy", known(facts.accuracy)},
                                    {"tta", facts.looks},
                                    {"doubt", facts.doubt},
                                    {"build", facts.build},
                                    {"command", facts.command}};
  const std::string begin = is_cut_off(file) ? "\n" : "";
  system::GrowingFile(file, system::Begin::append).write_line(begin + json_text(line));
}

nlohmann::ordered_json log_marks(const fs::path& run) {
  auto marks = nlohmann::ordered_json::object();
  for (const auto& [name, size] : logs_of(run)) marks[name] = size;
  return marks;
}

void check_marks(const nlohmann::ordered_json& marks) { checked(marks); }

std::vector<std::string> cut_logs(const fs::path& run, const nlohmann::ordered_json& marks) {
  const Sizes wanted = checked(marks), there = logs_of(run);
  std::vector<std::string> warnings;
  for (const auto& [name, size] : wanted) {
    const auto found = there.find(name);
    if (found == there.end()) {
      std::error_code ignored;
      const bool is_other =
          fs::symlink_status(run / name, ignored).type() != fs::file_type::not_found;
      warnings.push_back(
          name +
          (is_other ? " is a link, or no regular file, and is not gone on with" : " is missing") +
          ": it will not have the steps up to the checkpoint");
    } else if (found->second < size) {
      warnings.push_back(fmt::format("{} has lost {} of its bytes up to the checkpoint", name,
                                     with_commas(size - found->second)));
      if (name.find('/') == name.npos) system::cut_file(run / name, whole_lines(run / name));
    } else if (found->second > size) {
      system::cut_file(run / name, size);
    }
  }
  for (const auto& [name, size] : there) {
    if (wanted.contains(name)) continue;
    if (::unlink((run / name).c_str()) == 0) continue;
    if (!system::is_lacking(errno)) system::cannot_write(run / name, errno);
    system::cut_file(run / name, 0);
  }
  return warnings;
}

void sync_logs(const fs::path& run) {
  for (const auto& [name, size] : logs_of(run)) system::sync_file(run / name);
  system::sync_folder(run);
  for (const char* folder : kEventFolders) {
    if (system::is_folder(run / folder)) system::sync_folder(run / folder);
  }
}

}  // namespace cputrain::training
