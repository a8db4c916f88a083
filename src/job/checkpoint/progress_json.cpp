#include "job/checkpoint/progress_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/error.h"
#include "core/strict_json.h"
#include "core/text.h"
#include "job/checkpoint/earlier_state.h"

namespace cputrain::job {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 53;
constexpr int kMostEpochs = 1'000'000'000;
constexpr std::size_t kMostLeftOut = 1'000'000, kLongestFindings = 65536;
constexpr std::string_view kNan = "nan:";

// Writing.

Json number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{}{:016x}", kNan, std::bit_cast<std::uint64_t>(value));
}

Json budget_json(const Budget& budget) {
  Json json;
  for (const BudgetPart& part : kBudgetParts) json[part.name] = number(budget.*part.seconds);
  return json;
}

Json tally_json(const compute::Tally& tally) {
  return {{"loss", number(tally.loss)},
          {"correct", number(tally.correct)},
          {"images", number(tally.images)},
          {"among_five", number(tally.among_five)},
          {"ranked", number(tally.ranked)}};
}

Json begun_json(const train::EpochSums& begun) {
  return {{"steps", begun.steps},
          {"skipped", begun.skipped},
          {"train", tally_json(begun.train)},
          {"seconds", number(begun.seconds)},
          {"budget", budget_json(begun.budget)},
          {"settled",
           {{"steps", begun.settled.steps},
            {"seconds", number(begun.settled.seconds)},
            {"budget", budget_json(begun.settled.budget)}}},
          {"learning_rate", number(begun.learning_rate)}};
}

Json reached_json(const train::TimeToAccuracy& reached) {
  return {{"target", number(reached.target)},
          {"accuracy", number(reached.accuracy)},
          {"epoch", reached.epoch},
          {"seconds", number(reached.seconds)}};
}

// Reading.

/// A number that is none, as number() wrote it.
std::optional<double> number_of_text(const std::string& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (!text.starts_with(kNan) || text.size() != kNan.size() + 16) return std::nullopt;
  std::uint64_t bits = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + kNan.size(), end, bits, 16);
  const double value = std::bit_cast<double>(bits);
  if (error != std::errc() || stop != end || !std::isnan(value)) return std::nullopt;
  return value;
}

/// The fields of an object, each of which is asked for.
class Fields {
 public:
  Fields(const Json& json, std::string name) : json_(json), name_(std::move(name)) {
    if (!json.is_object()) wrong(name_, "is no object");
  }

  const Json& at(const char* field) {
    const auto found = json_.find(field);
    if (found == json_.end()) wrong(path(field), "is missing");
    ++asked_;
    return *found;
  }
  std::uint64_t count(const char* field, std::uint64_t most = kMostSteps) {
    return count_of(at(field), path(field), most);
  }
  int epochs(const char* field) {
    return static_cast<int>(count(field, static_cast<std::uint64_t>(kMostEpochs)));
  }
  /// Any number, those that are none included.
  double any(const char* field) {
    const Json& value = at(field);
    if (value.is_number()) return value.get<double>();
    const auto special =
        value.is_string() ? number_of_text(value.get<std::string>()) : std::nullopt;
    if (!special) wrong(path(field), "is no number");
    return *special;
  }
  /// A number from 0 on, such as seconds.
  double amount(const char* field) {
    const double value = any(field);
    if (!(std::isfinite(value) && value >= 0)) wrong(path(field), "is no number from 0 on");
    return value;
  }
  Fields object(const char* field) { return {at(field), path(field)}; }
  bool is_null(const char* field) { return at(field).is_null(); }
  std::string path(const std::string& field) const { return name_ + "." + field; }

  /// No field is left that nobody knows.
  void end() const {
    if (json_.size() == asked_) return;
    wrong(name_, fmt::format("has {} fields where {} are known", json_.size(), asked_));
  }

  static std::uint64_t count_of(const Json& value, const std::string& path, std::uint64_t most) {
    const bool whole =
        value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
    if (!whole || value.get<std::uint64_t>() > most) {
      wrong(path, fmt::format("is no whole number from 0 to {}", most));
    }
    return value.get<std::uint64_t>();
  }
  [[noreturn]] static void wrong(const std::string& path, const std::string& what) {
    fail(ExitCode::data,
         fmt::format("{} {} (the training cannot go on from it); use another checkpoint", path,
                     what));
  }

 private:
  const Json& json_;
  std::string name_;
  std::size_t asked_ = 0;
};

Budget budget_of(Fields fields) {
  Budget budget;
  for (const BudgetPart& part : kBudgetParts) budget.*part.seconds = fields.any(part.name);
  fields.end();
  return budget;
}

compute::Tally tally_of(Fields fields) {
  compute::Tally tally;
  tally.loss = fields.any("loss");
  tally.correct = fields.amount("correct");
  tally.images = fields.amount("images");
  tally.among_five = fields.amount("among_five");
  tally.ranked = fields.amount("ranked");
  fields.end();
  return tally;
}

train::SettledSteps settled_of(Fields fields) {
  train::SettledSteps settled;
  settled.steps = fields.count("steps");
  settled.seconds = fields.any("seconds");
  settled.budget = budget_of(fields.object("budget"));
  fields.end();
  return settled;
}

train::EpochSums begun_of(Fields fields) {
  train::EpochSums begun;
  begun.steps = fields.count("steps");
  begun.skipped = fields.count("skipped", begun.steps);
  begun.train = tally_of(fields.object("train"));
  begun.seconds = fields.amount("seconds");
  begun.budget = budget_of(fields.object("budget"));
  begun.settled = settled_of(fields.object("settled"));
  begun.learning_rate = fields.any("learning_rate");
  fields.end();
  return begun;
}

optim::PlateauState plateau_of(Fields fields) {
  optim::PlateauState plateau;
  plateau.best_loss = fields.any("best_loss");
  plateau.waited = fields.epochs("waited");
  plateau.factor = fields.amount("factor");
  fields.end();
  return plateau;
}

train::BestEpoch best_of(Fields fields) {
  train::BestEpoch best;
  best.loss = fields.any("loss");
  best.epoch = fields.epochs("epoch");
  fields.end();
  return best;
}

train::Patience patience_of(Fields fields) {
  train::Patience patience;
  patience.loss = fields.any("loss");
  patience.waited = fields.epochs("waited");
  fields.end();
  return patience;
}

train::TimeToAccuracy reached_of(Fields fields) {
  train::TimeToAccuracy reached;
  reached.target = fields.amount("target");
  reached.accuracy = fields.amount("accuracy");
  reached.epoch = fields.epochs("epoch");
  reached.seconds = fields.amount("seconds");
  fields.end();
  return reached;
}

std::vector<std::uint64_t> steps_of(const Json& list, const std::string& path) {
  if (!list.is_array() || list.size() > kMostLeftOut) Fields::wrong(path, "is no list of steps");
  std::vector<std::uint64_t> steps;
  for (const Json& step : list) steps.push_back(Fields::count_of(step, path, kMostSteps));
  return steps;
}

std::string findings_of(const Json& value, const std::string& path) {
  const auto plain = [](unsigned char c) { return c >= ' ' && c < 0x7f; };
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (!value.is_string() || text.size() > kLongestFindings || !std::ranges::all_of(text, plain)) {
    Fields::wrong(path, "is no such text");
  }
  return text;
}

}  // namespace

Json to_json(const train::Progress& p) {
  return {{"steps", p.steps},
          {"settled_steps", p.settled_steps},
          {"images", p.images},
          {"epochs", p.epochs},
          {"begun", p.begun ? begun_json(*p.begun) : Json(nullptr)},
          {"seconds", number(p.seconds)},
          {"training_seconds", number(p.training_seconds)},
          {"own_images", number(p.own_images)},
          {"plateau",
           {{"best_loss", number(p.plateau.best_loss)},
            {"waited", p.plateau.waited},
            {"factor", number(p.plateau.factor)}}},
          {"last_rate", number(p.last_rate)},
          {"best", {{"loss", number(p.best.loss)}, {"epoch", p.best.epoch}}},
          {"patience", {{"loss", number(p.patience.loss)}, {"waited", p.patience.waited}}},
          {"reached", p.reached ? reached_json(*p.reached) : Json(nullptr)},
          {"left_out", p.left_out},
          {"findings", p.findings}};
}

train::Progress progress_of(const Json& json) {
  Fields fields(json, "progress");
  train::Progress p;
  p.steps = fields.count("steps");
  p.settled_steps = fields.count("settled_steps", p.steps);
  p.images = fields.count("images");
  p.epochs = fields.epochs("epochs");
  if (!fields.is_null("begun")) p.begun = begun_of({json["begun"], fields.path("begun")});
  p.seconds = fields.amount("seconds");
  p.training_seconds = fields.amount("training_seconds");
  p.own_images = fields.amount("own_images");
  p.plateau = plateau_of(fields.object("plateau"));
  p.last_rate = fields.any("last_rate");
  p.best = best_of(fields.object("best"));
  p.patience = patience_of(fields.object("patience"));
  if (!fields.is_null("reached")) p.reached = reached_of({json["reached"], fields.path("reached")});
  p.left_out = steps_of(fields.at("left_out"), fields.path("left_out"));
  p.findings = findings_of(fields.at("findings"), fields.path("findings"));
  fields.end();
  if (p.begun && p.begun->steps > p.steps) {
    Fields::wrong(fields.path("begun.steps"), "is more than all steps");
  }
  return p;
}

Json parse_state(const std::string& text) {
  Json state;
  try {
    state = parse_strict_json(text);
  } catch (const std::runtime_error& error) {
    Fields::wrong("the text", std::string("is not valid JSON: ") + error.what());
  }
  if (!state.is_object()) Fields::wrong("the text", "is no JSON object");
  const auto format = state.find("format");
  const bool is_earlier = format != state.end() && *format == 1u;
  if (is_earlier) bring_up_to_date(state);
  if (!state.contains("format") || state.at("format") != kStateFormat) {
    Fields::wrong("format", fmt::format("is not {}: another version wrote it", kStateFormat));
  }
  return state;
}

train::Progress progress_of_state(const Json& state) {
  const auto progress = state.find("progress");
  if (progress == state.end()) Fields::wrong("progress", "is missing");
  return progress_of(*progress);
}

}  // namespace cputrain::job
