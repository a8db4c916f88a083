#include "backends/cpu/kernels/update.h"

#include "backends/cpu/kernels/clones.h"
#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"
#include "optim/update_math.h"

namespace cputrain::cpu {
namespace {

// Overloads rather than a template: only functions can be cloned. `flatten` pulls the shared loops
// in, so that each clone compiles them for its instruction set.
CPUTRAIN_CLONES [[gnu::flatten]] void update_range(const optim::Sgd& rule,
                                                   const optim::UpdatePointers<float>& p,
                                                   float rate, std::uint64_t step) {
  optim::update_math(rule, p, rate, step);
}

CPUTRAIN_CLONES [[gnu::flatten]] void update_range(const optim::RmsProp& rule,
                                                   const optim::UpdatePointers<float>& p,
                                                   float rate, std::uint64_t step) {
  optim::update_math(rule, p, rate, step);
}

CPUTRAIN_CLONES [[gnu::flatten]] void update_range(const optim::Adam& rule,
                                                   const optim::UpdatePointers<float>& p,
                                                   float rate, std::uint64_t step) {
  optim::update_math(rule, p, rate, step);
}

/// LARS and LAMB end in these: their layers' rates and directions are worked out before.
void update_range(const optim::Lars& rule, const optim::UpdatePointers<float>& p, float rate,
                  std::uint64_t step) {
  update_range(optim::Sgd{.momentum = rule.momentum}, p, rate, step);
}

void update_range(const optim::Lamb&, const optim::UpdatePointers<float>& p, float rate,
                  std::uint64_t step) {
  update_range(optim::Sgd{}, p, rate, step);
}

CPUTRAIN_CLONES [[gnu::flatten]] void change_range(const optim::AddWeights& op,
                                                   const optim::GradientPointers<float>& p) {
  optim::gradient_math(op, p);
}

CPUTRAIN_CLONES [[gnu::flatten]] void change_range(const optim::ClipValues& op,
                                                   const optim::GradientPointers<float>& p) {
  optim::gradient_math(op, p);
}

CPUTRAIN_CLONES [[gnu::flatten]] void change_range(const optim::ScaleGradients& op,
                                                   const optim::GradientPointers<float>& p) {
  optim::gradient_math(op, p);
}

CPUTRAIN_CLONES [[gnu::flatten]] void change_range(const optim::MoveAverage& op,
                                                   const optim::GradientPointers<float>& p) {
  optim::gradient_math(op, p);
}

CPUTRAIN_CLONES [[gnu::flatten]] void change_range(const optim::LambDirection& op,
                                                   const optim::GradientPointers<float>& p) {
  optim::gradient_math(op, p);
}

CPUTRAIN_CLONES [[gnu::flatten]] double square_block(const float* values, std::size_t n) {
  return optim::block_sum_of_squares(values, n);
}

CPUTRAIN_CLONES
void decay_range(float* weights, float keep, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) weights[i] *= keep;
}

}  // namespace

void update_in_parallel(const optim::UpdateStep& step, double weight_decay,
                        const optim::UpdateSlice& slice) {
  const auto weights = slice.weights.as<float>();
  const auto gradients = slice.gradients.as<float>();
  const auto states = to_size(optim::state_arrays(step.rule));
  const auto keep = optim::kept_by_decay<float>(step.learning_rate, weight_decay);
  parallel_ranges(weights.size(), [&](std::size_t begin, std::size_t end) {
    optim::UpdatePointers<float> p{
        weights.data() + begin, gradients.data() + begin, {}, end - begin};
    for (std::size_t i = 0; i < states; ++i) p.state[i] = slice.state[i].as<float>().data() + begin;
    if (weight_decay > 0) decay_range(p.weights, keep, p.size);
    std::visit(
        [&](const auto& r) {
          update_range(r, p, static_cast<float>(step.learning_rate), step.step);
        },
        step.rule);
  });
}

void change_gradients_in_parallel(const optim::GradientOperation& operation,
                                  const optim::UpdateSlice& slice) {
  const auto weights = slice.weights.as<float>();
  const auto gradients = slice.gradients.as<float>();
  parallel_ranges(weights.size(), [&](std::size_t begin, std::size_t end) {
    optim::GradientPointers<float> p{
        weights.data() + begin, gradients.data() + begin, {}, end - begin};
    for (std::size_t i = 0; i < slice.state.size(); ++i) {
      if (slice.state[i].data) p.state[i] = slice.state[i].as<float>().data() + begin;
    }
    std::visit([&](const auto& op) { change_range(op, p); }, operation);
  });
}

void block_norms_in_parallel(const Array& array, std::size_t position, std::span<double> blocks) {
  const auto values = array.as<float>();
  parallel_for(blocks.size(), [&](std::size_t i) {
    const auto block = optim::norm_block(values, position, i);
    blocks[i] = square_block(block.data(), block.size());
  });
}

}  // namespace cputrain::cpu
