#include "scaling/commands/kept_part.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "scaling/tune/silence.h"
#include "training/request/build_graph.h"
#include "training/training.h"
#include "training/training_features.h"

namespace cputrain::commands {
namespace {

/// All images of the training.
data::DataSource all_images(const training::Session& session, const training::TrainingSpec& spec) {
  data::DataRequest request = spec.flags.data_request(spec.seed);
  if (spec.flags.data.empty()) request.spec = fmt::format("synthetic:{}", 2 * spec.batch);
  return session.services.data.open(request);
}

}  // namespace

std::optional<double> kept_part(training::Session& session, const training::TrainingSpec& asked) {
  constexpr int kSomeClasses = 2;
  const tune::Silence silence(session);
  if (training::views_of(training::plan_training(session, asked, kSomeClasses), 1) == 0) {
    return std::nullopt;
  }
  training::TrainingSpec spec = asked;
  auto source = std::make_shared<const data::DataSource>(all_images(session, spec));
  training::follow_ready_form(spec, *source);
  const int classes = training::classes_of(spec, *source);
  training::Training training(session, training::plan_training(session, std::move(spec), classes),
                              std::move(source));
  training.compile();
  const double part = training.compiled().kept_features;
  return part > 0 ? std::optional(part) : std::nullopt;
}

}  // namespace cputrain::commands
