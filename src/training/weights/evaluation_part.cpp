#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "data/classes/class_names.h"
#include "training/plan/training_memory.h"
#include "training/weights/past_data.h"

namespace cputrain::training {
namespace {

using Samples = std::vector<std::uint32_t>;

bool is_same(const data::DataSource& source, const weights::ModelDescription& model) {
  return model.data && source.dataset->fingerprint() == model.data->fingerprint;
}

std::optional<weights::PastTraining> past_of(const weights::ModelDescription& model) {
  if (!model.data) return std::nullopt;
  return weights::PastTraining{*model.data, model.seed, model.validation_split};
}

/// Opens without limits, divided as in training where nothing else is asked for.
data::DataSource open_divided(const Session& session, const TrainingFlags& flags,
                              const weights::ModelDescription& model, data::DataRequest& request) {
  request = flags.data_request(flags.seed.value_or(model.seed));
  request.validation_split = flags.validation_split.value_or(model.validation_split);
  request.limit_train = request.limit_validation = {};
  request.to_evaluate = true;
  request.memory = rank_memory(measure_capacities(session), 0);
  request.known_classes = model.classes;
  request.exif = flags.exif.value_or(model.exif);
  const bool asked = flags.was_given("expand");
  if (!asked && model.data) request.expand = model.data->expand;
  {
    data::DataSource source = session.services.data.open(request);
    if (asked || request.expand == data::Expand::none || is_same(source, model)) return source;
  }  // what it holds in memory goes before the same is held again
  request.expand = data::Expand::none;  // as it lies there: this is other data
  return session.services.data.open(request);
}

struct Part {
  Samples samples;
  std::string name;
  std::string whose{};  ///< "its 'val' folder"; empty for all
  std::string why{};    ///< a clause without punctuation
  bool doubtful = false;
};

Part all_of(const data::DataSource& source, std::string why, bool doubtful = false) {
  Samples all;
  std::ranges::merge(source.train, source.validation, std::back_inserter(all));
  return {std::move(all), "all", "", std::move(why), doubtful};
}

/// All of it where there is no such part.
Part validation_of(const data::DataSource& source, std::string why, bool doubtful = false) {
  if (source.validation.empty()) return all_of(source, std::move(why), doubtful);
  return {source.validation, "validation", source.validation_name, std::move(why), doubtful};
}

/// What speaks against images of data that is divided here: training may have learnt from them.
/// Empty where nothing does.
std::string doubt_of(Learnt learnt, const weights::PastTraining& past,
                     const data::DataRequest& request) {
  switch (learnt) {
    case Learnt::not_known_to:
    case Learnt::not_from_kept:
      return "";
    case Learnt::from_all:
      return is_divided_alike(past, request) || past.validation_split == 0
                 ? "training held none out and learnt from them"
                 : "training learnt from images among them";
    case Learnt::from_some:
      return "files here have changed since training, which may have learnt from images among them";
    case Learnt::earlier:
      return "an earlier training of these weights learnt from them";
  }
  return "";
}

/// What is chosen of other data may have been moved or packed anew.
void doubt_learnt_images(const data::DataSource& source, const weights::ModelDescription& model,
                         Part& part) {
  const auto past = past_of(model);
  if (!past || part.doubtful || is_same(source, model)) return;
  const std::string image = learnt_image(*past, source, part.samples);
  if (image.empty()) return;
  part.why = "training learnt from images among them, such as " + image;
  part.doubtful = true;
}

/// For data that has neither a test nor a validation part of its own, or is to be divided anew.
Part divided(const data::DataSource& source, const weights::ModelDescription& model,
             const data::DataRequest& request, bool asked) {
  const auto past = past_of(model);
  const Learnt learnt = past ? learnt_from(*past, source, request) : Learnt::not_known_to;
  const std::string doubt =
      past ? doubt_of(learnt, *past, request) : "the weights do not say what training saw";
  const bool doubtful = !doubt.empty();
  if (asked) {
    if (!doubtful && is_same(source, model)) return validation_of(source, "held out from training");
    return validation_of(source, "as asked for" + (doubtful ? ", but " + doubt : ""), doubtful);
  }
  if (learnt == Learnt::earlier) return all_of(source, doubt, true);  // no part is better
  if (doubtful) return validation_of(source, doubt, true);
  if (is_same(source, model)) return validation_of(source, "held out from training");
  return all_of(source, "training saw other files");
}

Part choose_part(const data::DataSource& source, const TrainingFlags& flags,
                 const weights::ModelDescription& model, const data::DataRequest& request) {
  const bool asked = flags.validation_split || flags.seed;
  if (!source.test.empty() && !flags.validation_split) {
    return {source.test, "test", source.test_name};
  }
  if (source.own_validation && !source.validation.empty()) {
    return validation_of(source, is_same(source, model) ? "held out from training" : "");
  }
  return divided(source, model, request, asked);
}

}  // namespace

EvaluationPart open_to_evaluate(const TrainingFlags& flags, const Session& session,
                                const weights::ModelDescription& model) {
  data::DataRequest request;
  data::DataSource source = open_divided(session, flags, model, request);
  Part part = choose_part(source, flags, model, request);
  doubt_learnt_images(source, model, part);
  if (flags.limit_val) {
    part.samples =
        session.services.data.limited(*source.dataset, part.samples, *flags.limit_val, request);
  }
  source.validation = std::move(part.samples);
  source.train.clear();
  source.test.clear();
  data::give_classes(source, model.classes);
  const bool both = !part.whose.empty() && !part.why.empty();
  return {std::move(source), std::move(part.name), part.whose + (both ? ": " : "") + part.why,
          part.doubtful};
}

}  // namespace cputrain::training
