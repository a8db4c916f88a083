#include "cli/evaluation_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "core/hash.h"
#include "data/relabelled.h"

namespace cputrain {
namespace {

using Samples = std::vector<std::uint32_t>;

bool was_given(const Config& config, const char* flag) {
  return std::ranges::any_of(config.given, [&](const auto& given) { return given.first == flag; });
}

bool is_same(const DataSource& source, const ModelDescription& model) {
  return model.data && source.dataset->fingerprint() == model.data->fingerprint;
}

/// Opens without limits, divided as in training where nothing else is asked for.
DataSource open_divided(const Services& services, const Config& config,
                        const ModelDescription& model, DataRequest& request) {
  request = config.data_request(config.seed.value_or(model.seed));
  request.validation_split = config.validation_split.value_or(model.validation_split);
  request.limit_train = request.limit_validation = {};
  request.to_evaluate = true;
  const bool asked = was_given(config, "expand");
  if (!asked && model.data) request.expand = model.data->expand;
  DataSource source = services.data.open(request);
  if (asked || request.expand == Expand::none || is_same(source, model)) return source;
  request.expand = Expand::none;  // as it lies there: this is other data
  return services.data.open(request);
}

struct Part {
  Samples samples;
  std::string name, why;
  bool doubtful = false;
};

Part all_of(const DataSource& source, std::string why, bool doubtful = false) {
  Samples all;
  std::ranges::merge(source.train, source.validation, std::back_inserter(all));
  return {std::move(all), "all", std::move(why), doubtful};
}

Part validation_of(const DataSource& source, std::string why, bool doubtful = false) {
  if (source.validation.empty()) return all_of(source, std::move(why), doubtful);
  return {source.validation, "validation", source.validation_name + std::move(why), doubtful};
}

/// By a split that was asked for, whatever training saw.
Part asked_for(const DataSource& source, const ModelDescription& model,
               const DataRequest& request) {
  if (!is_same(source, model)) return validation_of(source, ", as asked for");
  const bool as_in_training = request.validation_split == model.validation_split &&
                              (request.seed == model.seed || request.validation_split == 0);
  if (as_in_training && model.validation_split > 0) {
    return validation_of(source, ", which training kept");
  }
  return validation_of(source, ", as asked for: training learnt from images among them", true);
}

/// Of data that has neither a test nor a validation part of its own.
Part divided(const DataSource& source, const ModelDescription& model, const std::string& spec) {
  if (is_same(source, model)) {
    if (source.validation.empty()) {
      return all_of(source, "training kept none and learnt from them", true);
    }
    return validation_of(source, ", which training kept");
  }
  if (!model.data) {
    return validation_of(
        source, ": what training saw is not known, the weights are of an earlier version", true);
  }
  if (model.data->place != 0 && model.data->place == place_of_data(spec)) {
    return validation_of(source,
                         ": files here have changed since training, which may have learnt from "
                         "images among them",
                         true);
  }
  if (std::ranges::count(model.data->earlier, source.dataset->fingerprint()) > 0) {
    return all_of(source, "an earlier training of these weights learnt from them", true);
  }
  return all_of(source, "training saw other data");
}

Part choose_part(const DataSource& source, const Config& config, const ModelDescription& model,
                 const DataRequest& request) {
  const bool asked = config.validation_split || config.seed;
  if (!source.test.empty() && !config.validation_split) {
    return {source.test, "test", source.test_name};
  }
  if (source.own_validation && !source.validation.empty()) {
    return validation_of(source, is_same(source, model) ? ", which training kept" : "");
  }
  return asked ? asked_for(source, model, request) : divided(source, model, request.spec);
}

}  // namespace

EvaluationPart open_to_evaluate(const Config& config, const Services& services,
                                const ModelDescription& model) {
  DataRequest request;
  DataSource source = open_divided(services, config, model, request);
  Part part = choose_part(source, config, model, request);
  if (config.limit_val) {
    part.samples = services.data.limited(*source.dataset, part.samples, *config.limit_val, request);
  }
  source.validation = std::move(part.samples);
  source.train.clear();
  source.test.clear();
  source.dataset = with_classes(std::move(source.dataset), model.classes);
  return {std::move(source), std::move(part.name), std::move(part.why), part.doubtful};
}

std::uint64_t place_of_data(const std::string& spec) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const std::string& path : {spec, spec.substr(spec.find(':') + 1)}) {
    const fs::path place = fs::canonical(path, error);
    if (!error) return Fnv1a().add(place.string()).value();
  }
  return 0;
}

}  // namespace cputrain
