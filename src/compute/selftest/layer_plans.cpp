#include "compute/selftest/layer_plans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/random/random.h"
#include "model/graph.h"

namespace cputrain::selftest {
namespace {

/// The last node whose gradient depends on signs or on which of several numbers is largest.
int last_kink(const model::Graph& graph) {
  int last = -1;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (model::facts_of(graph.nodes()[i].layer).has_kinks) last = static_cast<int>(i);
  }
  return last;
}

bool multiplies(const model::Graph::Node& node) { return model::facts_of(node.layer).has_kernel; }

/// Sums of n products stay about as large as what they are of: 2^exponent is near sqrt(2 n).
int exponent_of(const model::Graph::Node& node) {
  const auto& extents = node.parameters.front().extents;
  double products = 1;
  for (std::size_t i = 0; i + 1 < extents.size(); ++i) products *= extents[i];
  return std::ilogb(std::sqrt(2 * products));
}

/// Kernels of few bits up to the last kink of an exact case, so that every sum before it is exact
/// in float, and biases of odd multiples of half a step, so that no sum is 0, or at ReLU6's other
/// kink. Steps are as large as the pixels': numbers near 6 are exact in 16 bits, too.
WeightSource case_weights(const LayerCase& c, std::uint64_t seed) {
  const int exact_until = c.exact ? last_kink(c.graph) : -1;
  // The pixels' steps and one, since the first bias adds half of such a step.
  int exponent = 1 - std::ilogb(c.graph.input().scale.of[0]);
  std::vector<int> exponents;
  for (const model::Graph::Node& node : c.graph.nodes()) {
    exponents.push_back(exponent);
    if (multiplies(node) && node.origin < exact_until) exponent += exponent_of(node);
  }
  return [=](const model::Graph::Node& node, std::size_t index) {
    if (!multiplies(node) || node.origin >= exact_until) return trial_weights(node, index);
    compute::CaseNumbers numbers(seed, node.parameters[index].name);
    const int before = exponents[static_cast<std::size_t>(node.origin)];
    const int own = exponent_of(node);
    std::vector<double> values(node.parameters[index].size());
    for (double& value : values) {
      value = index == 0 ? std::ldexp(numbers.between(-2, 2), -own)
                         : std::ldexp(2 * numbers.between(-3, 2) + 1, -(before + own + 1));
    }
    return values;
  };
}

/// Gradients are compared by their length, so they should not cancel: images differ in brightness,
/// and there are not as many of each class.
Samples samples_of(const LayerCase& c, std::uint64_t seed) {
  constexpr int kFewBits = 8;
  const int images = std::accumulate(c.pieces.begin(), c.pieces.end(), 0);
  const Shape& logits = c.graph.nodes()[c.graph.nodes().size() - 2].dst;
  const int classes = std::max(2, logits.channels);
  Samples samples = make_images(images, c.graph.image(), classes, seed);
  for (int i = 0; i < images; ++i) {
    samples.labels[static_cast<std::size_t>(i)] = i / 2 % classes;
    for (std::uint8_t& byte : samples.images[static_cast<std::size_t>(i)]) {
      byte = static_cast<std::uint8_t>(c.exact ? byte % kFewBits : byte / (1 + i % 3));
    }
    if (c.mixes) {
      samples.mixed.push_back({(i / 2 + i) % classes, 0.75f + 0.5f * static_cast<float>(i % 2),
                               0.375f / static_cast<float>(1 + i)});
    }
  }
  return samples;
}

/// "conv2d" of "conv2d/kernel".
std::string layer_of(const compute::Parameter& parameter) {
  return parameter.name.substr(0, parameter.name.rfind('/'));
}

/// Those of a layer together: its bias may have a gradient that is small by chance.
compute::RunOutputs outputs_of(const Outcome& outcome, const compute::ParameterLayout& layout) {
  compute::RunOutputs outputs;
  outputs.add("loss", std::vector{outcome.tally.loss});
  outputs.add(kPredictions, std::vector{outcome.tally.correct});
  outputs.add("probabilities", outcome.probabilities);
  for (std::size_t p = 0; p < outcome.gradients.size(); ++p) {
    const compute::Parameter& parameter = layout.parameters[p];
    const std::string name =
        parameter.learnt ? "gradients of " + layer_of(parameter) : parameter.name;
    if (outputs.list.back().name != name) outputs.add(name, std::vector<double>{});
    auto& values = outputs.list.back().values;
    values.insert(values.end(), outcome.gradients[p].begin(), outcome.gradients[p].end());
  }
  return outputs;
}

compute::RunOutputs train(compute::Backend& backend, const LayerCase& c, std::uint64_t seed,
                          double before) {
  constexpr std::uint64_t kStep = 4;
  Trial trial(backend, c.graph, c.pieces, compute::Phase::train, nullptr, nullptr,
              case_weights(c, seed));
  const std::vector<double> poison(trial.gradients().size, before);
  compute::write_numbers(backend.memory(), poison, trial.gradients());
  const Outcome outcome = trial.train(samples_of(c, seed), c.pieces, kStep);
  return outputs_of(outcome, trial.program().layout());
}

constexpr std::uint64_t kSeed = 7;

int total(const std::vector<int>& pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), 0);
}

}  // namespace

compute::CasePlan plan_of(const LayerCase& c, std::uint64_t seed, double limit,
                          compute::Backend& tested, compute::Backend& reference) {
  return {.name = c.name,
          .limit = limit,
          .compute =
              [&c, &tested, seed](int run) {
                const double poison = run == 0 ? std::numeric_limits<double>::quiet_NaN() : 1e30;
                return train(tested, c, seed, poison);
              },
          .expect = [&c, &reference, seed] { return expected_of(c, seed, reference); }};
}

compute::RunOutputs expected_of(const LayerCase& c, std::uint64_t seed,
                                compute::Backend& reference) {
  return train(reference, c, seed, 0);
}

std::string refusal_of(const LayerCase& c, compute::Backend& backend) {
  try {
    const Trial trial(backend, c.graph, c.pieces);
    return "";
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    return error.what();
  }
}

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

}  // namespace cputrain::selftest
