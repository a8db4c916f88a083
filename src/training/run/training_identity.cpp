#include "training/run/training_identity.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <variant>

#include "checkpoint/manifest.h"
#include "core/hash.h"
#include "core/json_text.h"
#include "core/text.h"
#include "model/model_json.h"
#include "system/bounded_file.h"
#include "training/asked_end.h"
#include "training/request/training_rows.h"
#include "training/weights/named_weights.h"
#include "weights/weight_file.h"

namespace cputrain::training {
namespace {

constexpr const char* kFirstSteps = "steps of the first epoch";

/// "photos (0123456789abcdef)": one that is elsewhere now has another name and the same hash.
std::string with_hash(const std::string& name, std::uint64_t hash) {
  return fmt::format("{} ({:016x})", printable(name), hash);
}

/// Which images are left out, since they cannot be read.
std::string damaged_text(const data::DecodedData& data) {
  Fnv1a names;
  for (const data::BadSample& bad : data.bad) names.add(bad.name);
  return data.bad.empty() ? kNone : with_hash(std::to_string(data.bad.size()), names.value());
}

/// A file of weights, by all that is in it: its name may be another run's soon. Of rank 0.
std::string weights_text(const TrainingFlags& flags) {
  if (!weights_are_there(flags.weights)) return flags.weights + kNotThere;
  if (!weights::is_of_keras(flags.weights)) weights::open_tensors(flags.weights);
  const system::RegularFile file(flags.weights);
  return with_hash(flags.partial ? flags.weights + " --partial" : flags.weights,
                   Fnv1a()
                       .add_number(checkpoint::checksum_of(file))
                       .add_number(file.size())
                       .add_number(flags.partial)
                       .value());
}

}  // namespace

std::string_view hash_or_text(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  if (text.size() < kDigits + 2 || !text.ends_with(')')) return text;
  const std::string_view hash = text.substr(text.size() - kDigits - 1, kDigits);
  const bool is_hash = text[text.size() - kDigits - 2] == '(' &&
                       hash.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return is_hash ? hash : text;
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
  for (const std::string& figure : optim::figure_names()) {
    if (flags.contains(figure)) identity[figure] = flags[figure];
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
  if (plan.spec.flags.safety.keeps_best()) identity[kEnd][kSaveBest] = true;
  return identity;
}

void add_decoded(nlohmann::ordered_json& identity, const Training& training) {
  identity[kDamaged] = damaged_text(*training.data());
  identity[kFirstSteps] = training.batches().train.steps();
}

}  // namespace cputrain::training
