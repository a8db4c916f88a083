#include "training/run/training_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

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

constexpr const char *kBackend = "backend", *kPrecision = "precision", *kDamaged = "damaged images",
                     *kFirstSteps = "steps of the first epoch", *kNone = "none",
                     *kGone = " (not there)", *kEvalEvery = "eval-every", *kSchedule = "schedule";

/// What a training may change as it goes on, and whose change after its end would change nothing.
constexpr const char* kOfTheProgram[] = {kBackend, kPrecision};

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

/// Whether they are named and not there any more, in a training that began with some.
bool weights_are_gone(const nlohmann::ordered_json& then, const nlohmann::ordered_json& here) {
  return then.contains(kFirstWeights) && shown(here, kFirstWeights).ends_with(kGone);
}

/// Whether rates or the end follow from how many evaluations there were, in both.
bool counts_evaluations(const nlohmann::ordered_json& then, const nlohmann::ordered_json& here) {
  const auto waits = [](const nlohmann::ordered_json& training) {
    return training.contains(kEnd) && end_of_json(training.at(kEnd)).patience;
  };
  return shown(here, kSchedule).starts_with("plateau") || (waits(then) && waits(here));
}

/// What tells two trainings apart only where it matters to what follows.
bool is_without_effect(const std::string& name, const nlohmann::ordered_json& then,
                       const nlohmann::ordered_json& here) {
  return name == kEvalEvery && !counts_evaluations(then, here);
}

/// A resume need not name the weights that a training began with: they may be gone.
bool may_differ(const std::string& name, const nlohmann::ordered_json& here) {
  if (name == kFirstWeights) return !here.contains(kFirstWeights);
  return std::ranges::find(kOfTheProgram, name) != std::end(kOfTheProgram);
}

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

bool leaves_out_images(const nlohmann::ordered_json& facts) {
  return shown(facts.at("training"), kDamaged) != kNone;
}

std::vector<std::string> identity_differences(const nlohmann::ordered_json& then,
                                              const nlohmann::ordered_json& here, Compared what) {
  const bool goes_on = what == Compared::checkpoint;
  std::vector<std::string> names, rows;
  for (const auto* object : {&here, &then}) {
    for (const auto& [name, value] : object->items()) {
      if (name == kEnd || (goes_on && may_differ(name, here))) continue;
      if (name == kFirstWeights && weights_are_gone(then, here)) continue;
      if (is_without_effect(name, then, here)) continue;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  const auto unknown = [](const nlohmann::ordered_json& object, const std::string& name) {
    return object.contains(name) && object.at(name).is_null();
  };
  for (const std::string& name : names) {
    if (unknown(then, name) || unknown(here, name)) continue;
    const std::string there = shown(then, name.c_str()), now = shown(here, name.c_str());
    if (!are_same(there, now)) {
      rows.push_back(fmt::format("{}: {} in the {}, {} here", printable(name), there,
                                 goes_on ? "checkpoint" : "run", now));
    }
  }
  return rows;
}

std::string program_text(const nlohmann::ordered_json& identity) {
  if (!identity.contains(kBackend) || !identity.contains(kPrecision)) return "";
  return fmt::format("--backend {} --precision {}", shown(identity, kBackend),
                     shown(identity, kPrecision));
}

}  // namespace cputrain::training
