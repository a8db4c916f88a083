#include "job/training_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/hash.h"
#include "core/json_text.h"
#include "core/text.h"
#include "job/spec/effective_flags.h"
#include "model/model_json.h"

namespace cputrain::job {
namespace {

/// Flags that make a training what it is. Those that nobody gave and no recipe decides are left
/// out, alike in both.
constexpr const char* kFlags[] = {
    "image-size",      "dropout",       "freeze",   "validation-split",
    "limit-train",     "limit-val",     "balanced", "expand",
    "resize",          "exif",          "augment",  "batch",
    "accumulate",      "batch-growth",  "sharding", "seed",
    "optimizer",       "momentum",      "nesterov", "rho",
    "centered",        "epsilon",       "trust",    "weight-decay",
    "clip-value",      "clip-norm",     "lr",       "lr-scale",
    "base-batch",      "warmup-epochs", "schedule", "momentum-correction",
    "label-smoothing", "sync-bn",       "compress"};

std::string shown(const nlohmann::ordered_json& object, const char* name) {
  if (!object.contains(name)) return "none";
  const auto& value = object.at(name);
  return printable(value.is_string() ? value.get<std::string>() : value.dump());
}

/// Which images are left out, since they cannot be read: null before anybody has tried.
nlohmann::ordered_json damaged_text(const data::DecodedData* data) {
  if (data == nullptr) return nullptr;
  Fnv1a names;
  for (const data::BadSample& bad : data->bad) names.add(bad.name);
  return data->bad.empty() ? "none" : fmt::format("{} ({:016x})", data->bad.size(), names.value());
}

/// 1e-3 and 0.001 are one.
bool are_same(const std::string& a, const std::string& b) {
  if (a == b) return true;
  double x = 0, y = 0;
  const auto reads = [](const std::string& text, double& number) {
    const char* const end = text.data() + text.size();
    return std::from_chars(text.data(), end, number).ptr == end;
  };
  return reads(a, x) && reads(b, y) && x == y;
}

}  // namespace

nlohmann::ordered_json training_identity(const TrainingJob& job) {
  const TrainingPlan& plan = job.plan();
  const nlohmann::ordered_json flags = effective_flags(plan.spec);
  nlohmann::ordered_json identity{
      {"model", plan.spec.model->name},
      {"network",
       fmt::format("{:016x}", Fnv1a().add(json_text(model::to_json(plan.graph))).value())},
      {"data", fmt::format("{:016x}", job.source().dataset->fingerprint())},
      {"training images", job.source().train.size()},
      {"validation images", job.source().validation.size()},
      {"damaged images", damaged_text(job.data())},
      {"steps of the first epoch",
       job.data() ? nlohmann::ordered_json(job.batches().train.steps()) : nullptr}};
  for (const char* name : kFlags) {
    if (flags.contains(name)) identity[name] = flags[name];
  }
  // The rate of all ranks together, where it grows with their number.
  if (const auto& n = plan.spec.learning_rate.n) identity["rate is scaled by"] = *n;
  identity["shuffle"] = plan.spec.shuffle;
  identity["drop-last"] = plan.spec.plan.drop_last;
  // Leaves are added up in their order: other leaves, other bits. Of batch normalization without
  // --sync-bn a micro-batch is what statistics are of.
  if (plan.leaves) {
    identity["micro-batch"] = plan.leaves->images;
  } else if (plan.graph.has_batch_norm() && plan.spec.flags.micro_batch) {
    identity["micro-batch"] = *plan.spec.flags.micro_batch;
  }
  return identity;
}

std::vector<std::string> identity_differences(const nlohmann::ordered_json& checkpoint,
                                              const nlohmann::ordered_json& here) {
  std::vector<std::string> names, rows;
  for (const auto* object : {&checkpoint, &here}) {
    for (const auto& [name, value] : object->items()) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  const auto unknown = [](const nlohmann::ordered_json& object, const std::string& name) {
    return object.contains(name) && object.at(name).is_null();
  };
  for (const std::string& name : names) {
    if (unknown(checkpoint, name) || unknown(here, name)) continue;
    const std::string there = shown(checkpoint, name.c_str()), now = shown(here, name.c_str());
    if (!are_same(there, now)) {
      rows.push_back(fmt::format("{}: {} in the checkpoint, {} here", printable(name), there, now));
    }
  }
  return rows;
}

}  // namespace cputrain::job
