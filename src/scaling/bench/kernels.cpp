#include "scaling/bench/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "data/batch_plan.h"
#include "data/batch_source.h"
#include "model/rewrite.h"
#include "model/summary.h"
#include "scaling/bench/steps.h"
#include "weights/load.h"
#include "weights/weight_file.h"

namespace cputrain::bench {
namespace {

using Json = nlohmann::ordered_json;

/// A network with one number of images at once.
class KernelTrial {
 public:
  /// With the spec's weights, or initial ones by its seed. A round is the first `passes`
  /// micro-batches of the source.
  KernelTrial(const training::Session&, const model::Graph&, const training::TrainingSpec&,
              int micro_batch, int passes);

  /// Rounds that do not count: until the program has found its algorithms, and one more.
  void warm_up(data::BatchSource&);
  void measure(data::BatchSource&);

  const auto& rounds() const { return rounds_; }

 private:
  void round(data::BatchSource&);

  std::uint64_t seed_;
  int images_, passes_;  ///< per round
  compute::OwnedArray weights_, gradients_;
  std::unique_ptr<compute::Program> program_;
  std::vector<std::vector<compute::LayerTime>> rounds_;
};

KernelTrial::KernelTrial(const training::Session& session, const model::Graph& graph,
                         const training::TrainingSpec& spec, int micro_batch, int passes)
    : seed_(spec.seed), images_(micro_batch * passes), passes_(passes) {
  compute::Memory& memory = session.backend->memory();
  compute::CompileOptions options{compute::Phase::train, {micro_batch}};
  program_ = session.backend->compile(graph, options, [&](const compute::ParameterLayout& layout) {
    weights_ = compute::OwnedArray(memory, layout.arena_size, layout.dtype);
    gradients_ = compute::OwnedArray(memory, layout.gradient_size, layout.dtype);
    return compute::Arenas{weights_.array(), gradients_.array()};
  });
  program_->time_layers(true);
  if (spec.flags.weights.empty()) {
    weights::initialise_weights(graph, *program_, spec.seed, weights_.array());
  } else {
    const weights::WeightArrays file = weights::open_arrays(
        spec.flags.weights, graph, spec.model->modules, session.services.read_keras, true);
    weights::load_weights(file, *program_, weights_.array());
    if (!file.caveat.empty()) {
      training::warn_once(session,
                          fmt::format("--weights {}: {}", spec.flags.weights, file.caveat));
    }
  }
}

void KernelTrial::round(data::BatchSource& batches) {
  batches.seek(0, 0);
  const double loss_scale = 1.0 / images_;
  for (int k = 0; k < passes_; ++k) {
    program_->forward(batches.next(), {compute::Phase::train, seed_, 0});
    program_->backward(
        {loss_scale, k == 0 ? compute::Accumulate::overwrite : compute::Accumulate::add});
  }
  if (const std::string why = batches.failure(); !why.empty()) fail(ExitCode::data, why);
}

void KernelTrial::warm_up(data::BatchSource& batches) {
  constexpr int kMostRounds = 24;
  for (int i = 0; i < kMostRounds && program_->tuner().trying(); ++i) round(batches);
  round(batches);
}

void KernelTrial::measure(data::BatchSource& batches) {
  const std::vector<compute::LayerTime> before = program_->layer_times();
  round(batches);
  rounds_.push_back(compute::difference(program_->layer_times(), before));
}

/// From all rounds, what they say of layer `index`, which moves so many bytes for an image.
void add_layer(KernelFigures& to, std::size_t index, double bytes, const compute::Limits& limits,
               Precision precision) {
  const compute::LayerTime& layer = to.rounds.back()[index];
  LayerFigures figures{.name = layer.name,
                       .macs = layer.macs,
                       .bytes_of_image = bytes,
                       .density = layer.density,
                       .gradient_density = layer.gradient_density};
  for (const compute::LayerDirection& way : compute::kLayerDirections) {
    std::vector<double> seconds;  // per image, by round
    for (const auto& layers : to.rounds) seconds.push_back(layers[index].*way.seconds / to.images);
    const Spread spread = spread_of(seconds);
    if (spread.min <= 0) continue;
    DirectionFigures& own = figures.directions.emplace_back(
        DirectionFigures{&way, way.algorithm(layer), spread, std::nullopt, std::nullopt});
    if (layer.macs > 0) {
      own.gflops = spread_of_rates(2e-9 * layer.macs, seconds);
      own.of_peak = own.gflops->median / limits.peak(precision);
    }
    if (bytes > 0) {
      own.gbs = spread_of_rates(1e-9 * bytes, seconds);
      own.of_bandwidth = own.gbs->median / limits.triad_gbs;
    }
  }
  to.layers.push_back(std::move(figures));
}

/// From all rounds, what they say of a network.
void fill(KernelFigures& figures, const training::Session& session,
          const training::TrainingSpec& spec, const model::Graph& graph,
          const compute::Limits& limits) {
  const std::map<std::string, Line> least =
      model::least_bytes(graph, session.backend->facts().number_bytes);
  const Precision precision = spec.flags.precision;
  std::vector<double> whole;
  for (const auto& layers : figures.rounds) {
    double seconds = 0;
    for (const compute::LayerTime& layer : layers) seconds += layer.seconds();
    whole.push_back(seconds / figures.images);
  }
  figures.seconds = spread_of(whole);
  figures.gflops = spread_of_rates(1e-9 * graph.training_flops(), whole);
  figures.of_peak = figures.gflops.median / limits.peak(precision);
  for (std::size_t i = 0; i < figures.rounds.back().size(); ++i) {
    // A program may have steps that are no layer of the graph, such as a copy.
    const auto found = least.find(figures.rounds.back()[i].name);
    const Line own = found == least.end() ? Line{} : found->second;
    add_layer(figures, i, own.each + own.fixed / figures.micro_batch, limits, precision);
  }
}

Json json_of(const std::optional<Spread>& spread) {
  return spread ? cputrain::json_of(*spread) : Json();
}

Json json_of(const LayerFigures& layer) {
  Json directions = Json::array();
  for (const DirectionFigures& d : layer.directions) {
    directions.push_back({{"direction", d.way->name},
                          {"algorithm", d.algorithm},
                          {"seconds_per_image", cputrain::json_of(d.seconds)},
                          {"gflops", json_of(d.gflops)},
                          {"fraction_of_peak", known(d.of_peak)},
                          {"gbs", json_of(d.gbs)},
                          {"fraction_of_bandwidth", known(d.of_bandwidth)}});
  }
  return {{"name", layer.name},
          {"macs_per_image", layer.macs},
          {"bytes_per_image", layer.bytes_of_image},
          {"density", known(layer.density)},
          {"gradient_density", known(layer.gradient_density)},
          {"directions", std::move(directions)}};
}

}  // namespace

KernelMeasurement measure_kernels(const training::Session& session,
                                  const training::TrainingSpec& spec, const model::Graph& given,
                                  const data::ImageSet& images, const KernelRequest& request) {
  const model::Graph no_zeros = model::with_dropout(model::without_relus(given), 0);
  const data::OnProgress progress = training::progress_line(session, "Measuring");
  const std::size_t all =
      request.micro_batches.size() * 2 * (static_cast<std::size_t>(request.repeats) + 1);
  std::size_t done = 0;
  const compute::Limits before = training::measure_together(session);
  KernelMeasurement found;
  for (const int micro_batch : request.micro_batches) {
    const data::BatchPlan plan(images.size(), request.images(micro_batch), micro_batch, 0, 1);
    const auto batches = session.services.data.batches(
        images, plan,
        {.seed = spec.seed, .shuffle = spec.shuffle, .feeder = session.backend->feeder()});
    const int passes = request.passes(micro_batch);
    KernelTrial trials[] = {{session, given, spec, micro_batch, passes},
                            {session, no_zeros, spec, micro_batch, passes}};
    for (KernelTrial& trial : trials) {
      trial.warm_up(*batches);
      if (progress) progress(++done, all);
    }
    for (int i = 0; i < request.repeats; ++i) {
      for (KernelTrial& trial : trials) {  // in turn, so that a disturbance meets both alike
        trial.measure(*batches);
        if (progress) progress(++done, all);
      }
    }
    found.given.push_back({micro_batch, micro_batch * passes, trials[0].rounds()});
    found.no_zeros.push_back({micro_batch, micro_batch * passes, trials[1].rounds()});
  }
  found.limits = compute::better(before, training::measure_together(session));
  for (KernelFigures& figures : found.given) fill(figures, session, spec, given, found.limits);
  for (KernelFigures& figures : found.no_zeros) {
    fill(figures, session, spec, no_zeros, found.limits);
  }
  return found;
}

nlohmann::ordered_json json_of(const KernelFigures& figures) {
  Json layers = Json::array();
  for (const LayerFigures& layer : figures.layers) layers.push_back(json_of(layer));
  return {{"seconds_per_image", json_of(figures.seconds)},
          {"gflops", json_of(figures.gflops)},
          {"fraction_of_peak", figures.of_peak},
          {"layers", std::move(layers)}};
}

}  // namespace cputrain::bench
