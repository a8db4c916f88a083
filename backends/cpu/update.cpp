#include "backends/cpu/update.h"

#include "backends/cpu/clones.h"
#include "backends/cpu/parallel.h"
#include "train/update_math.h"

namespace cputrain {
namespace {

// Overloads rather than a template: only functions can be cloned. `flatten` pulls the shared loops
// in, so that each clone compiles them for its instruction set.
CPUTRAIN_CLONES [[gnu::flatten]] void update_range(const Sgd& rule, const UpdatePointers<float>& p,
                                                   float rate, std::uint64_t step) {
  update_math(rule, p, rate, step);
}

CPUTRAIN_CLONES [[gnu::flatten]] void update_range(const RmsProp& rule,
                                                   const UpdatePointers<float>& p, float rate,
                                                   std::uint64_t step) {
  update_math(rule, p, rate, step);
}

CPUTRAIN_CLONES [[gnu::flatten]] void update_range(const Adam& rule, const UpdatePointers<float>& p,
                                                   float rate, std::uint64_t step) {
  update_math(rule, p, rate, step);
}

CPUTRAIN_CLONES
void decay_range(float* weights, float keep, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) weights[i] *= keep;
}

}  // namespace

void update_in_parallel(const UpdateRule& rule, const UpdateSlice& slice) {
  const auto weights = slice.weights.as<float>();
  const auto gradients = slice.gradients.as<float>();
  const auto states = static_cast<std::size_t>(state_arrays(rule));
  const auto keep = static_cast<float>(1 - slice.learning_rate * slice.weight_decay);
  parallel_ranges(weights.size(), [&](std::size_t begin, std::size_t end) {
    UpdatePointers<float> p{weights.data() + begin, gradients.data() + begin, {}, end - begin};
    for (std::size_t i = 0; i < states; ++i) p.state[i] = slice.state[i].as<float>().data() + begin;
    if (slice.weight_decay > 0) decay_range(p.weights, keep, p.size);
    std::visit(
        [&](const auto& r) {
          update_range(r, p, static_cast<float>(slice.learning_rate), slice.step);
        },
        rule);
  });
}

}  // namespace cputrain
