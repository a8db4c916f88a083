#include "training/run/training_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "core/hash.h"
#include "core/json_text.h"
#include "core/text.h"
#include "model/model_json.h"
#include "system/bounded_file.h"
#include "training/asked_end.h"
#include "training/request/flag_row.h"
#include "training/request/training_rows.h"
#include "training/run/run_weights.h"
#include "weights/safetensors.h"
#include "weights/weight_file.h"

namespace cputrain::training {
namespace {

constexpr const char *kBackend = "backend", *kPrecision = "precision",
                     *kFirstSteps = "steps of the first epoch", *kGone = " (not there)",
                     *kEvalEvery = "eval-every", *kSchedule = "schedule";

/// "photos (0123456789abcdef)": one that is elsewhere now has another name and the same hash.
std::string with_hash(const std::string& name, std::uint64_t hash) {
  return fmt::format("{} ({:016x})", printable(name), hash);
}

/// The hash of such a text, or all of it.
std::string_view compared(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  if (text.size() < kDigits + 2 || !text.ends_with(')')) return text;
  const std::string_view hash = text.substr(text.size() - kDigits - 1, kDigits);
  const bool is_hash = text[text.size() - kDigits - 2] == '(' &&
                       hash.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return is_hash ? hash : text;
}

/// What holds where a file has no such name.
std::string before(std::string_view name) {
  if (name == kMonitor) return std::string(word_of(optim::Monitor::loss));
  return kNone;
}

std::string shown(const nlohmann::ordered_json& object, const char* name) {
  if (!object.contains(name)) return before(name);
  const auto& value = object.at(name);
  return printable(value.is_string() ? value.get<std::string>() : value.dump());
}

/// Which images are left out, since they cannot be read.
std::string damaged_text(const data::DecodedData& data) {
  Fnv1a names;
  for (const data::BadSample& bad : data.bad) names.add(bad.name);
  return data.bad.empty() ? kNone : with_hash(std::to_string(data.bad.size()), names.value());
}

/// 1e-3 and 0.001 are one.
bool are_same(const std::string& a, const std::string& b) {
  if (compared(a) == compared(b)) return true;
  double x = 0, y = 0;
  const auto reads = [](const std::string& text, double& number) {
    const char* const end = text.data() + text.size();
    return std::from_chars(text.data(), end, number).ptr == end;
  };
  return reads(a, x) && reads(b, y) && x == y;
}

/// A file of weights, by all that is in it: its name may be another run's soon. Of rank 0.
std::string weights_text(const TrainingFlags& flags) {
  if (!weights_are_there(flags.weights)) return flags.weights + kGone;
  if (!weights::is_of_keras(flags.weights)) {
    const weights::safetensors::File checked(flags.weights);
  }
  const system::RegularFile file(flags.weights);
  std::vector<std::byte> piece(std::size_t{1} << 20);
  std::uint32_t sum = 0;
  for (std::uintmax_t place = 0;;) {
    const std::size_t read = file.read_some(place, piece);
    if (read == 0) break;
    sum = crc32c(std::span(piece).first(read), sum);
    place += read;
  }
  return with_hash(
      flags.partial ? flags.weights + " --partial" : flags.weights,
      Fnv1a().add_number(sum).add_number(file.size()).add_number(flags.partial).value());
}

/// Two identities beside each other.
struct Identities {
  const nlohmann::ordered_json &then, &here;
  Compared what;

  bool go_on() const { return what == Compared::checkpoint; }
};

/// A resume need not name the weights that a training began with, nor have them.
bool weights_may_differ(const Identities& two) {
  const bool named = two.here.contains(kFirstWeights);
  const bool gone =
      two.then.contains(kFirstWeights) && shown(two.here, kFirstWeights).ends_with(kGone);
  return gone || (two.go_on() && !named);
}

/// Unless rates or the end follow from how many evaluations there were, in both.
bool evaluations_may_differ(const Identities& two) {
  const auto waits = [](const nlohmann::ordered_json& training) {
    return training.contains(kEnd) && end_of_json(training.at(kEnd)).patience;
  };
  const bool follow = shown(two.here, kSchedule).starts_with("plateau");
  return !follow && !(waits(two.then) && waits(two.here));
}

/// What is not simply another training where its text is another one.
struct Exception {
  std::string_view name;
  bool (*may_differ)(const Identities&);
};
constexpr Exception kExceptions[] = {
    {kEnd, [](const Identities&) { return true; }},  // see kEndRows
    // A training may change them as it goes on; one that is finished would not be made anew.
    {kBackend, [](const Identities& two) { return two.go_on(); }},
    {kPrecision, [](const Identities& two) { return two.go_on(); }},
    {kFirstWeights, weights_may_differ},
    {kEvalEvery, evaluations_may_differ}};

bool may_differ(const std::string& name, const Identities& two) {
  const auto* const found = std::ranges::find(kExceptions, name, &Exception::name);
  return found != std::end(kExceptions) && found->may_differ(two);
}

std::string stopping_text(const loop::TrainingEnd& end) {
  if (!end.patience) return "none";
  return end.min_delta == 0 ? fmt::format("{}", *end.patience)
                            : fmt::format("{}:{}", *end.patience, end.min_delta);
}

template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "none";
}

/// Where --epochs and --steps end the training, and how often it is asked for settled ones.
bool have_one_length(const loop::TrainingEnd& a, const loop::TrainingEnd& b) {
  return a.steps == b.steps && a.settled_steps == b.settled_steps &&
         (a.steps || a.epochs == b.epochs);
}

bool is_exactly(const loop::TrainingEnd& end, const loop::Progress& progress) {
  if (end.steps) return end.settled_steps == 0 && *end.steps == progress.steps;
  return end.epochs == progress.epochs && !progress.begun;
}

/// Whether the rate of every step depends on where the training ends.
bool follows_end(const optim::Schedule& schedule) {
  return std::holds_alternative<optim::CosineDecay>(schedule) ||
         std::holds_alternative<optim::PolynomialDecay>(schedule);
}

/// Whether what is asked for ends elsewhere than the run did, or was led there by another rate.
bool is_elsewhere(const Ends& ends) {
  const loop::TrainingEnd &then = ends.then.end, &now = ends.now.end;
  if (have_one_length(then, now)) return false;
  const bool same_place =
      !asks_for_less(now, ends.progress) &&
      (is_exactly(now, ends.progress) || !loop::steps_are_made(now, ends.progress));
  return !same_place || follows_end(ends.schedule);
}

bool target_is_other(const Ends& ends) {
  const auto &then = ends.then.end.target_accuracy, &now = ends.now.end.target_accuracy;
  return now && (!then || *now < *then);
}

bool patience_is_other(const Ends& ends) {
  const loop::TrainingEnd &then = ends.then.end, &now = ends.now.end;
  if (!now.patience) return false;
  return !then.patience || *now.patience < *then.patience || now.min_delta != then.min_delta;
}

bool lacks_best(const Ends& ends) { return ends.now.saves_best && !ends.then.keeps_best(); }

bool best_is_by_another(const Ends& ends) {
  return ends.now.keeps_best() && ends.then.keeps_best() &&
         ends.then.end.monitor != ends.now.end.monitor;
}

/// By what a finished run may be another one than what is asked for, and what it is in either.
struct EndRow {
  const char* name;
  bool (*is_other)(const Ends&);
  std::string (*text)(const Ending&);
};
constexpr EndRow kEndRows[] = {
    {"epochs", is_elsewhere, [](const Ending& e) { return fmt::format("{}", e.end.epochs); }},
    {"steps", is_elsewhere, [](const Ending& e) { return text_of(e.end.steps); }},
    {"settled-steps", is_elsewhere,
     [](const Ending& e) { return fmt::format("{}", e.end.settled_steps); }},
    {"target-accuracy", target_is_other,
     [](const Ending& e) { return text_of(e.end.target_accuracy); }},
    {"early-stopping", patience_is_other, [](const Ending& e) { return stopping_text(e.end); }},
    {kSaveBest, lacks_best,
     [](const Ending& e) { return std::string(e.keeps_best() ? "on" : "off"); }},
    {kMonitor, best_is_by_another,
     [](const Ending& e) { return std::string(word_of(e.end.monitor)); }}};

}  // namespace

std::string name_of_weights(const std::string& value) {
  constexpr std::string_view kPartial = " --partial";
  std::string_view name = value;
  const std::string_view hash = compared(name);
  if (hash.size() < name.size()) name.remove_suffix(hash.size() + 3);  // " (" and ")"
  if (name.ends_with(kPartial)) name.remove_suffix(kPartial.size());
  return std::string(name);
}

nlohmann::ordered_json training_identity(const Training& training) {
  const TrainingPlan& plan = training.plan();
  const data::DataSource& source = training.source();
  const nlohmann::ordered_json flags = effective_flags(plan.spec);
  const std::uint64_t network = Fnv1a().add(json_text(model::to_json(plan.graph))).value();
  nlohmann::ordered_json identity{
      {"model", plan.spec.model->name},
      {"network", with_hash(with_commas(plan.graph.parameter_count()) + " parameters", network)},
      {"data", with_hash(plan.spec.flags.data_or_synthetic(), source.dataset->fingerprint())},
      {"classes", plan.classes},
      {"training images", source.train.size()},
      {"validation images", source.validation.size()},
      {kDamaged, nullptr},
      {kFirstSteps, nullptr}};
  // Those that were not given and no recipe decides are left out, alike in both.
  for (const FlagRow& row : training_rows()) {
    if (!row.is_identity) continue;
    if (row.kind == FlagRow::Kind::yes_or_no) {
      identity[row.name] = row.holds(plan.spec);
    } else if (flags.contains(row.name)) {
      identity[row.name] = flags[row.name];
    }
  }
  identity[kEvalEvery] = plan.spec.flags.eval_every;
  if (const ClassWeights& weights = plan.spec.flags.class_weights; !weights.by_name.empty()) {
    identity["class-weights"] = with_hash(
        weights.text, Fnv1a().add(json_text(nlohmann::ordered_json(weights.by_name))).value());
  }
  // A plateau's rate follows it. The loss, which is the default, is left out.
  if (std::holds_alternative<optim::Plateau>(plan.spec.learning_rate.schedule) &&
      plan.spec.flags.safety.monitor != optim::Monitor::loss) {
    identity[kMonitor] = word_of(plan.spec.flags.safety.monitor);
  }
  // The rate of all ranks together, where it grows with their number.
  if (const auto& n = plan.spec.learning_rate.n) identity["rate is scaled by"] = *n;
  // Chunks are added up in their order: other chunks, other bits. Of batch normalization without
  // --sync-bn a micro-batch is what statistics are of.
  if (plan.chunks) {
    identity["micro-batch"] = plan.chunks->images;
  } else if (plan.graph.has_batch_norm() && plan.spec.flags.micro_batch) {
    identity["micro-batch"] = *plan.spec.flags.micro_batch;
  }
  if (plan.spec.flags.reproducible) identity["reproducible"] = true;
  if (training.session().leads() && !plan.spec.flags.weights.empty()) {
    identity[kFirstWeights] = weights_text(plan.spec.flags);
  }
  identity[kBackend] = training.session().backend->name();
  identity[kPrecision] = word_of(plan.spec.flags.precision);
  identity[kEnd] = to_json(end_of(plan.spec));
  if (plan.spec.flags.safety.save_best) identity[kEnd][kSaveBest] = true;
  return identity;
}

void add_decoded(nlohmann::ordered_json& identity, const Training& training) {
  identity[kDamaged] = damaged_text(*training.data());
  identity[kFirstSteps] = training.batches().train.steps();
}

std::string to_text(const Difference& difference, Compared what) {
  return fmt::format("{}: {} in the {}, {} here", printable(difference.name), difference.then,
                     what == Compared::checkpoint ? "checkpoint" : "run", difference.here);
}

std::vector<Difference> identity_differences(const nlohmann::ordered_json& then,
                                             const nlohmann::ordered_json& here, Compared what) {
  std::vector<std::string> names;
  for (const auto* object : {&here, &then}) {
    for (const auto& [name, value] : object->items()) {
      if (may_differ(name, {then, here, what})) continue;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  const auto unknown = [](const nlohmann::ordered_json& object, const std::string& name) {
    return object.contains(name) && object.at(name).is_null();
  };
  std::vector<Difference> rows;
  for (const std::string& name : names) {
    if (unknown(then, name) || unknown(here, name)) continue;
    const std::string there = shown(then, name.c_str()), now = shown(here, name.c_str());
    if (!are_same(there, now)) rows.push_back({name, there, now});
  }
  return rows;
}

Ending ending_of(const nlohmann::ordered_json& identity) {
  const nlohmann::ordered_json& end = identity.at(kEnd);
  return {end_of_json(end), end.contains(kSaveBest)};
}

std::vector<Difference> end_differences(const Ends& ends) {
  std::vector<Difference> rows;
  for (const EndRow& row : kEndRows) {
    const std::string there = row.text(ends.then), here = row.text(ends.now);
    if (row.is_other(ends) && there != here) rows.push_back({row.name, there, here});
  }
  return rows;
}

bool makes_another_network(const Difference& difference) {
  return difference.name == "model" || difference.name == "network" || difference.name == "classes";
}

std::string program_text(const nlohmann::ordered_json& identity) {
  if (!identity.contains(kBackend) || !identity.contains(kPrecision)) return "";
  return fmt::format("--backend {} --precision {}", shown(identity, kBackend),
                     shown(identity, kPrecision));
}

}  // namespace cputrain::training
