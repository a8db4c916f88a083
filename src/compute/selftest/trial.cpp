#include "compute/selftest/trial.h"

#include <numeric>

#include "core/random/random.h"
#include "model/init.h"

namespace cputrain::selftest {
namespace {

constexpr std::uint64_t kSeed = 7;

int total(const std::vector<int>& pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), 0);
}

}  // namespace

std::vector<double> trial_weights(const model::Graph::Node& node, std::size_t index) {
  const model::ParameterSpec& spec = node.parameters[index];
  std::vector<double> values = model::initial_values(node, spec, kSeed);
  if (spec.extents.size() > 1) return values;
  const RandomStream stream(kSeed, Purpose::weights, static_cast<std::uint32_t>(node.origin), 99);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float unit = unit_float(stream.at(static_cast<std::uint32_t>(i))[0]);
    values[i] += static_cast<double>(0.2f * unit - 0.1f);
  }
  return values;
}

Samples make_images(int count, Shape image, int classes, std::uint64_t seed) {
  Samples made;
  for (int i = 0; i < count; ++i) {
    const auto sample = static_cast<std::uint32_t>(i);
    const RandomStream stream(seed, Purpose::pixels, sample);
    auto& pixels = made.images.emplace_back(image.size());
    for (std::size_t p = 0; p < pixels.size(); ++p) {
      pixels[p] = static_cast<std::uint8_t>(stream.at(static_cast<std::uint32_t>(p))[0]);
    }
    made.labels.push_back(i % classes);
    made.samples.push_back(1000 + 3 * sample);
  }
  return made;
}

Trial::Trial(compute::Backend& backend, const model::Graph& graph, std::vector<int> sizes,
             compute::Phase phase, comm::Communicator* synchronise, comm::Communicator* sharing,
             const WeightSource& weights_of) {
  const auto arenas = [&](const compute::ParameterLayout& layout) {
    compute::Memory& memory = backend.memory();
    weights_ = compute::OwnedArray(memory, layout.arena_size, layout.dtype);
    if (phase == compute::Phase::train)
      gradients_ = compute::OwnedArray(memory, layout.gradient_size, layout.dtype);
    return compute::Arenas{weights_.array(), gradients_.array()};
  };
  program_ = backend.compile(graph, {phase, std::move(sizes), synchronise, {}, sharing}, arenas);
  std::size_t parameter = 0;
  for (const auto& node : graph.nodes()) {
    for (std::size_t i = 0; i < node.parameters.size(); ++i) {
      program_->parameters().from_canonical(parameter++, weights_of(node, i), weights());
    }
  }
}

Outcome Trial::run(const Samples& samples, const std::vector<int>& pieces,
                   const compute::Pass& pass, int batch_size) {
  Outcome outcome;
  std::vector<const std::uint8_t*> images;
  for (const auto& image : samples.images) images.push_back(image.data());
  const double scale = 1.0 / batch_size;
  std::size_t first = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto count = static_cast<std::size_t>(pieces[i]);
    const bool mixes = pass.phase == compute::Phase::train && !samples.mixed.empty();
    const compute::MicroBatch all{
        images, samples.labels, samples.samples,
        mixes ? std::span(samples.mixed) : std::span<const compute::MixedLabel>()};
    program_->forward(all.part(first, count), pass);
    const auto probabilities = program_->probabilities();
    outcome.probabilities.insert(outcome.probabilities.end(), probabilities.begin(),
                                 probabilities.end());
    first += count;
    if (pass.phase == compute::Phase::train) {
      program_->backward(
          {scale, i == 0 ? compute::Accumulate::overwrite : compute::Accumulate::add});
    }
  }
  outcome.tally = program_->tally().wait();
  return outcome;
}

Outcome Trial::train(const Samples& samples, const std::vector<int>& pieces, std::uint64_t step,
                     std::optional<int> batch) {
  Outcome outcome = run(samples, pieces, {compute::Phase::train, kSeed, step, true},
                        batch.value_or(total(pieces)));
  program_->publish_statistics();
  for (std::size_t p = 0; p < program_->layout().parameters.size(); ++p) {
    const bool learnt = program_->layout().parameters[p].learnt;
    outcome.gradients.push_back(
        program_->parameters().to_canonical(p, learnt ? gradients() : weights()));
  }
  return outcome;
}

Outcome Trial::evaluate(const Samples& samples, const std::vector<int>& pieces) {
  return run(samples, pieces, {compute::Phase::evaluate, kSeed, 0, true}, total(pieces));
}

compute::OwnedArray array_of(compute::Backend& backend, std::span<const double> values) {
  compute::OwnedArray owned(backend.memory(), values.size(), backend.dtype());
  compute::write_numbers(backend.memory(), values, owned.array());
  return owned;
}

}  // namespace cputrain::selftest
