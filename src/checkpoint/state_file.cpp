#include "checkpoint/state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "checkpoint/folder.h"
#include "core/error.h"
#include "core/json_fields.h"
#include "core/json_text.h"
#include "system/bounded_file.h"
#include "system/files.h"

namespace cputrain::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLargest = std::size_t{64} << 20;
constexpr const char *kFormatKey = "format", *kProgress = "progress", *kTunedFor = "findings_of";

/// Calls what reads from a state, naming the file where that is wrong.
template <class F>
auto from_file(const std::filesystem::path& folder, const F& read) {
  const std::filesystem::path file = folder / kStateName;
  try {
    return read(parse_state(system::read_bounded(file, kLargest)));
  } catch (const Error& error) {
    fail(ExitCode::data, "checkpoint file {}: {}", file.string(), error.what());
  } catch (const std::runtime_error& error) {
    fail(ExitCode::data,
         "checkpoint file {} {} (the training cannot go on from it); use another checkpoint",
         file.string(), error.what());
  }
}

constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;
constexpr int kMostEpochs = 1'000'000'000;
constexpr std::size_t kMostLeftOut = 1'000'000;
constexpr double kAny = std::numeric_limits<double>::max();  ///< of seconds and images, from 0 on
constexpr std::string_view kRemedy = "(the training cannot go on from it); use another checkpoint";

void describe_budget(JsonMembers& f, Budget& budget) {
  for (const BudgetPart& part : kBudgetParts) f.exact(part.name, budget.*part.seconds);
}

constexpr auto describe_tally = [](JsonMembers& f, auto& tally) {
  f.exact("loss", tally.loss);
  f.need("correct", tally.correct, 0, kAny);
  f.need("images", tally.images, 0, kAny);
  f.need("among_five", tally.among_five, 0, kAny);
  f.need("ranked", tally.ranked, 0, kAny);
};

constexpr auto describe_settled = [](JsonMembers& f, auto& settled) {
  f.need("steps", settled.steps, 0, kMostSteps);
  f.exact("seconds", settled.seconds);
  f.object("budget", settled.budget, describe_budget, true);
};

constexpr auto describe_begun = [](JsonMembers& f, auto& begun) {
  f.need("steps", begun.steps, 0, kMostSteps);
  f.need("skipped", begun.skipped, 0, begun.steps);
  f.object("train", begun.train, describe_tally, true);
  f.need("seconds", begun.seconds, 0, kAny);
  f.object("budget", begun.budget, describe_budget, true);
  f.object("settled", begun.settled, describe_settled, true);
  f.exact("learning_rate", begun.learning_rate);
  f.rare("from_features", begun.from_features, 0, kAny);
};

constexpr auto describe_plateau = [](JsonMembers& f, auto& plateau) {
  f.exact("best_loss", plateau.best_loss);
  f.need("waited", plateau.waited, 0, kMostEpochs);
  f.need("factor", plateau.factor, 0, kAny);
  f.rare("best_accuracy", plateau.best_accuracy, 0, 1);
};

constexpr auto describe_best = [](JsonMembers& f, auto& best) {
  f.exact("loss", best.loss);
  f.need("epoch", best.epoch, 0, kMostEpochs);
  f.rare("accuracy", best.accuracy, 0, 1);
};

constexpr auto describe_patience = [](JsonMembers& f, auto& patience) {
  f.exact("loss", patience.loss);
  f.need("waited", patience.waited, 0, kMostEpochs);
  f.rare("accuracy", patience.accuracy, 0, 1);
};

constexpr auto describe_reached = [](JsonMembers& f, auto& reached) {
  f.need("target", reached.target, 0, kAny);
  f.need("accuracy", reached.accuracy, 0, kAny);
  f.need("epoch", reached.epoch, 0, kMostEpochs);
  f.need("seconds", reached.seconds, 0, kAny);
};

void check(const JsonFields& file, const loop::Progress& p) {
  const auto plain = [](unsigned char c) { return c >= ' ' && c < 0x7f; };
  if (!std::ranges::all_of(p.tuned_methods, plain)) file.wrong("findings must be plain text");
  if (p.begun && p.begun->steps > p.steps) {
    file.wrong("begun: steps must not be more than all steps");
  }
}

void describe_progress(JsonMembers& f, loop::Progress& p) {
  f.need("steps", p.steps, 0, kMostSteps);
  f.rare("skipped", p.skipped, 0, p.steps);
  f.need("settled_steps", p.settled_steps, 0, p.steps);
  f.need("images", p.images, 0, kMostSteps);
  f.need("epochs", p.epochs, 0, kMostEpochs);
  f.null_or_object("begun", p.begun, describe_begun);
  f.need("seconds", p.seconds, 0, kAny);
  f.need("training_seconds", p.training_seconds, 0, kAny);
  f.need("own_images", p.own_images, 0, kAny);
  f.object("plateau", p.plateau, describe_plateau, true);
  f.exact("last_rate", p.last_rate);
  f.object("best", p.best, describe_best, true);
  f.object("patience", p.patience, describe_patience, true);
  f.null_or_object("reached", p.reached, describe_reached);
  f.need("left_out", p.left_out, 0, kMostLeftOut, 0, static_cast<double>(kMostSteps));
  f.need("findings", p.tuned_methods);
  if (f.file()) check(*f.file(), p);
}

[[noreturn]] void refuse(const std::string& what) { fail(ExitCode::data, "{} {}", what, kRemedy); }

}  // namespace

std::string kernels_of(const compute::Backend& backend) {
  return fmt::format("{}: {}", backend.name(), backend.facts().kernels);
}

void write_state(const std::filesystem::path& folder, const loop::Progress& progress,
                 const std::string& tuned_for, const Json& facts) {
  Json state{{kFormatKey, kStateFormat}, {kProgress, to_json(progress)}, {kTunedFor, tuned_for}};
  for (const auto& [name, fact] : facts.items()) state[name] = fact;
  system::write_own_file(folder / kStateName, json_text(state, 1) + "\n");
}

SavedState read_state(const std::filesystem::path& folder) {
  return from_file(folder, [](const Json& state) {
    SavedState saved{progress_of_state(state)};
    const auto word = state.find(kTunedFor);
    if (word != state.end() && word->is_string()) saved.tuned_for = word->get<std::string>();
    return saved;
  });
}

Json read_facts(const std::filesystem::path& folder) {
  return from_file(folder, [](Json state) {
    for (const char* own : {kFormatKey, kProgress, kTunedFor}) state.erase(own);
    return state;
  });
}

loop::Progress read_progress(const std::filesystem::path& folder) {
  return read_state(folder).progress;
}

Json to_json(const loop::Progress& progress) { return json_of(progress, describe_progress); }

loop::Progress progress_of(const Json& json) {
  const nlohmann::json plain(json);
  return value_of<loop::Progress>({plain, "progress", kRemedy}, describe_progress, true);
}

Json parse_state(const std::string& text) {
  Json state;
  try {
    state = parse_strict_json(text);
  } catch (const std::runtime_error& error) {
    refuse(std::string("the text is not valid JSON: ") + error.what());
  }
  if (!state.is_object()) refuse("the text is no JSON object");
  if (!state.contains("format") || state.at("format") != kStateFormat) {
    refuse(fmt::format("format is not {}: another version wrote it", kStateFormat));
  }
  return state;
}

loop::Progress progress_of_state(const Json& state) {
  const auto progress = state.find("progress");
  if (progress == state.end()) refuse("progress is missing");
  return progress_of(*progress);
}

}  // namespace cputrain::checkpoint
