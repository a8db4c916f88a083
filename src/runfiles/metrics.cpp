#include "runfiles/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/text.h"
#include "system/bounded_file.h"

namespace cputrain::runfiles {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kRemedy = "";  // what is wrong with a line is said by its number
constexpr double kMost = 1e15;            // steps, images, seconds, bytes
constexpr int kMostEpochs = 1 << 30, kMostRanks = 1 << 24;
constexpr double kMostInEpoch = std::numeric_limits<int>::max();  // steps
constexpr std::uintmax_t kMostFile = std::uintmax_t{1} << 32, kMostKept = 256 << 20,
                         kMostLine = 1 << 20;  // bytes

/// `nan`: the line's mark, behind the first loss that it is of; null where a line has none.
void describe_figures(JsonMembers& f, const std::string& prefix, Figures& figures, bool* nan) {
  f.finite((prefix + "loss").c_str(), figures.loss);
  if (nan && (f.file() || !figures.finite_loss())) f.rare("nan", *nan);
  f.may((prefix + "accuracy").c_str(), figures.accuracy, 0, 1);
  f.rare((prefix + "top_5_accuracy").c_str(), figures.top_5_accuracy, 0, 1);
}

void describe_figures(JsonMembers& f, const std::string& prefix, std::optional<Figures>& figures,
                      bool* nan) {
  if (f.file() && f.file()->contains((prefix + "loss").c_str())) figures.emplace();
  if (figures) describe_figures(f, prefix, *figures, nan);
}

void describe(JsonMembers& f, StepLine& line) {
  f.need("step", line.step, 1, kMost);
  f.may("epoch", line.epoch, 1, kMostEpochs);
  f.need("images", line.images, 0, kMost);
  f.may("images_seen", line.images_seen, 0, kMost);
  f.rare("skipped", line.skipped);
  f.finite("loss", line.figures.loss);
  f.rare("nan", line.nan);
  f.may("accuracy", line.figures.accuracy, 0, 1);
  f.may("lr", line.learning_rate, -kMost, kMost);
  f.may("seconds", line.seconds, 0, kMost);
  f.rare("trying", line.trying);
}

void describe_settled(JsonMembers& f, loop::SettledSteps& settled) {
  f.need("steps", settled.steps, 0, kMost);
  f.may("seconds", settled.seconds, 0, kMost);
  f.may_object("budget", settled.budget, fields_of_budget);
}

void describe_straggler(JsonMembers& f, loop::Straggler& straggler) {
  f.need("rank", straggler.rank, 0, kMostRanks);
  f.need("host", straggler.host);
  f.need("seconds", straggler.seconds, -kMost, kMost);
}

void describe(JsonMembers& f, EpochLine& line) {
  double rate = line.seconds > 0 ? static_cast<double>(line.images) / line.seconds : 0;
  f.need("epoch", line.epoch, 1, kMostEpochs);
  f.need("steps", line.steps, 0, kMostInEpoch);
  f.need("images", line.images, 0, kMost);
  f.need("seconds", line.seconds, 0, kMost);
  f.may("images_per_second", rate, 0, kMost);
  describe_figures(f, "", line.train, &line.nan);
  describe_figures(f, "val_", line.validation, &line.nan);
  if (line.validation) {
    f.rare("val_images", line.validation_images, 0, kMost);
    f.may("val_seconds", line.validation_seconds, 0, kMost);
  }
  describe_figures(f, "ema_val_", line.averaged, &line.nan);
  f.may("lr", line.learning_rate, -kMost, kMost);
  f.may_object("budget", line.budget, fields_of_budget);
  f.may_object("settled", line.settled, describe_settled);
  if (f.file() && f.file()->has("straggler")) line.straggler.emplace();
  if (line.straggler) f.object("straggler", *line.straggler, describe_straggler);
  fields_of_taken(f, line.taken);
  f.rare("skipped", line.skipped, 0, kMost);
  f.rare("from_features", line.from_features, 0, kMost);
  f.rare("kernels", line.kernels);
}

void describe(JsonMembers& f, ResumeLine& line) {
  f.need("step", line.step, 0, kMost);
  f.may("epoch", line.epoch, 1, kMostEpochs);
  f.may("made", line.made, 0, kMost);
  f.may("ranks", line.ranks, 1, kMostRanks);
  f.may("checkpoint", line.checkpoint);
  f.rare("kernels", line.kernels);
  f.rare("left_out", line.left_out, 0, 1'000'000, 0, kMost);
  f.rare("lost_seconds", line.lost_seconds, -kMost, kMost);
}

void describe_reached(JsonMembers& f, loop::TimeToAccuracy& reached) {
  f.may("accuracy", reached.accuracy, 0, 1);
  f.may("epoch", reached.epoch, 0, kMostEpochs);
  f.may("seconds", reached.seconds, 0, kMost);
}

void describe_program(JsonMembers& f, ProgramSeconds& program) {
  double other = program.other();
  f.may("seconds", program.all, -kMost, kMost);
  f.may("start_up", program.start_up, -kMost, kMost);
  f.may("training", program.training, -kMost, kMost);
  f.may("evaluation", program.evaluation, -kMost, kMost);
  f.may("other", other, -kMost, kMost);
}

void describe(JsonMembers& f, SummaryLine& line) {
  std::string outcome = line.interrupted ? "interrupted" : "finished";
  f.need("outcome", outcome);
  line.interrupted = outcome == "interrupted";
  if (!line.interrupted && outcome != "finished") f.file()->wrong("outcome is no such word");
  f.may("steps", line.steps, 0, kMost);
  f.may("epochs", line.epochs, 0, kMostEpochs);
  f.may("seconds", line.seconds, 0, kMost);
  f.may("training_seconds", line.training_seconds, 0, kMost);
  describe_figures(f, "", line.train, nullptr);
  describe_figures(f, "val_", line.validation, nullptr);
  describe_figures(f, "ema_val_", line.averaged, nullptr);
  if (f.file() ? f.file()->has("best_epoch") : line.best_epoch > 0) {
    f.need("best_epoch", line.best_epoch, 1, kMostEpochs);
    f.finite("best_loss", line.best_loss);
    f.may("best_accuracy", line.best_accuracy, 0, 1);
    if (!f.file() || f.file()->has("monitor")) {
      f.word("monitor", line.monitor, names(optim::Monitor{}));
    }
  }
  f.rare("early_stopped", line.early_stopped);
  f.rare("target_accuracy", line.target_accuracy, -kMost, kMost);
  if (f.file() || line.reached || line.target_accuracy) {
    f.may_object("time_to_accuracy", line.reached, describe_reached);
  }
  f.rare("density", line.density, 0, 1);
  f.rare("peak_rank_bytes", line.peak_rank_bytes, 0, kMost);
  f.rare("peak_node_bytes", line.peak_node_bytes, 0, kMost);
  f.rare("peak_device_bytes", line.peak_device_bytes, 0, kMost);
  f.may("weights_hash", line.weights_hash);
  f.may("weights", line.weights);
  f.may_object("program", line.program, describe_program);
  f.may("checkpoint_seconds", line.checkpoint_seconds, 0, kMost);
}

constexpr const char *kStep = "step", *kEpoch = "epoch", *kResume = "resume", *kSummary = "summary",
                     *kTraining = "training";

template <class Line>
Json json_of_line(const char* type, Line line) {
  Json written{{"type", type}};
  JsonMembers members(written);
  describe(members, line);
  return written;
}

template <class Line>
Line line_of(const nlohmann::json& object) {
  const JsonFields fields(object, kMetricsName, kRemedy);
  Line line;
  JsonMembers members(fields);
  describe(members, line);
  return line;
}

SummaryLine summary_of(const nlohmann::json& object) {
  auto line = line_of<SummaryLine>(object);
  const auto training = object.find(kTraining);
  if (training != object.end() && training->is_object()) line.training = json_text(*training);
  return line;
}

/// Takes one line after the other. One that is not as a run writes it is counted and passed over.
class Reader {
 public:
  Reader(bool keeps_steps, Metrics& metrics) : keeps_steps_(keeps_steps), metrics_(metrics) {}

  void take(const std::string& text) {
    ++number_;
    last_is_cut_ = false;
    // Steps are most lines by far.
    if (!keeps_steps_ && text.starts_with(R"({"type":"step")") && text.ends_with('}')) {
      passed_over_ = text;
      metrics_.summary.reset();
      ++metrics_.lines;
      return;
    }
    kept_ += text.size();
    std::string type;
    try {
      const nlohmann::json object = parse_strict_json(text);
      if (!object.is_object()) return bad("JSON object");
      const auto word = object.find("type");
      if (word == object.end() || !word->is_string()) return bad("line of a run");
      type = word->get<std::string>();
      take(type, object);
      ++metrics_.lines;
    } catch (const std::exception&) {
      last_is_cut_ = type.empty();
      bad(type.empty() ? "JSON object" : printable(type) + " as a run writes it");
    }
  }

  /// `whole`: all lines were read.
  void end(bool whole) {
    try {
      if (!passed_over_.empty()) {
        metrics_.last_step = line_of<StepLine>(nlohmann::json::parse(passed_over_));
      }
    } catch (const std::exception&) {  // then nothing is known of it
    }
    if (faults_ == 0) return;
    const std::string more = faults_ > 1 ? fmt::format("{} such lines; ", faults_) : "";
    metrics_.troubles.push_back(faults_ == 1 && last_is_cut_ && whole && number_ > 1
                                    ? "its last line is cut off (the others count)"
                                    : fmt::format("{} ({}the others count)", first_fault_, more));
  }

  /// Bytes of the lines that are kept.
  std::uintmax_t kept() const { return kept_; }

 private:
  void bad(const std::string& what) {
    if (faults_++ == 0) first_fault_ = fmt::format("line {} is no {}", number_, what);
  }

  void take(const std::string& type, const nlohmann::json& object) {
    metrics_.summary.reset();
    if (type == kStep) {
      take_step(line_of<StepLine>(object));
    } else if (type == kEpoch) {
      take_epoch(line_of<EpochLine>(object));
    } else if (type == kResume) {
      metrics_.resumes.push_back(line_of<ResumeLine>(object));
      forget_step();
    } else if (type == kSummary) {
      metrics_.summary = summary_of(object);
    }
  }

  void take_step(const StepLine& line) {
    passed_over_.clear();
    metrics_.last_step = line;
    if (!keeps_steps_) return;
    auto& steps = metrics_.steps;
    steps.erase(std::ranges::lower_bound(steps, line.step, {}, &StepLine::step), steps.end());
    steps.push_back(line);
  }

  void take_epoch(EpochLine line) {
    auto& epochs = metrics_.epochs;
    while (!epochs.empty() && epochs.back().epoch >= line.epoch) epochs.pop_back();
    epochs.push_back(std::move(line));
    forget_step();
  }

  void forget_step() {
    passed_over_.clear();
    metrics_.last_step.reset();
  }

  bool keeps_steps_;
  Metrics& metrics_;
  std::string passed_over_;  ///< the newest step's line, where steps are passed over
  std::string first_fault_;
  std::size_t number_ = 0, faults_ = 0;
  std::uintmax_t kept_ = 0;
  bool last_is_cut_ = false;
};

Metrics read_lines(const std::filesystem::path& file, bool with_steps) {
  Metrics metrics;
  Reader reader(with_steps, metrics);
  try {
    system::BoundedLines lines(file, with_steps ? kMostKept : kMostFile, kMostLine);
    while (const auto line = lines.next()) {
      reader.take(*line);
      if (reader.kept() > kMostKept) throw std::runtime_error("has too many lines to be kept");
    }
  } catch (const std::runtime_error& problem) {
    metrics.troubles.push_back(printable(problem.what()));
  }
  reader.end(metrics.troubles.empty());
  return metrics;
}

}  // namespace

std::optional<double> Figures::finite_loss() const {
  return std::isfinite(loss) ? std::optional(loss) : std::nullopt;
}

std::string to_text(const StepLine& line) { return json_text(json_of_line(kStep, line)); }
std::string to_text(const EpochLine& line) { return json_text(json_of_line(kEpoch, line)); }
std::string to_text(const ResumeLine& line) { return json_text(json_of_line(kResume, line)); }

std::string to_text(const SummaryLine& line) {
  Json json = json_of_line(kSummary, line);
  if (!line.training.empty()) json[kTraining] = Json::parse(line.training);
  return json_text(json);
}

Metrics read_metrics(const std::filesystem::path& file) {
  return read_lines(file, /*with_steps=*/false);
}

Metrics read_metrics_and_steps(const std::filesystem::path& file) {
  return read_lines(file, /*with_steps=*/true);
}

std::optional<SummaryLine> summary_at_end(const std::filesystem::path& path) {
  try {
    const system::RegularFile file(path);
    const std::uintmax_t begin = file.size() > kMostLine ? file.size() - kMostLine : 0;
    std::string end(file.size() - begin, '\0');
    file.read_at(begin, std::as_writable_bytes(std::span(end)));
    if (!end.ends_with('\n')) return std::nullopt;
    end.pop_back();
    const nlohmann::json line = parse_strict_json(end.substr(end.rfind('\n') + 1));
    if (!line.is_object() || line.value("type", "") != kSummary) return std::nullopt;
    return summary_of(line);
  } catch (const std::exception&) {
    return std::nullopt;  // no such file, or one that was cut
  }
}

bool is_finished(const std::filesystem::path& run) {
  const auto summary = summary_at_end(run / kMetricsName);
  return summary && !summary->interrupted;
}

}  // namespace cputrain::runfiles
