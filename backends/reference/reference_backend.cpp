#include "backends/reference/reference_backend.h"

#include <algorithm>
#include <vector>

#include "backends/reference/program.h"
#include "exchange/exchange.h"
#include "optim/update_math.h"
#include "system/clock.h"

namespace cputrain::reference {
namespace {

template <class T>
optim::UpdatePointers<T> pointers(const optim::UpdateSlice& slice) {
  optim::UpdatePointers<T> p{
      slice.weights.as<T>().data(), slice.gradients.as<T>().data(), {}, slice.weights.size};
  for (int i = 0; i < optim::kMaxStateArrays; ++i) {
    p.state[i] = slice.state[i].data ? slice.state[i].as<T>().data() : nullptr;
  }
  return p;
}

template <class T>
optim::GradientPointers<T> gradient_pointers(const optim::UpdateSlice& slice) {
  const optim::UpdatePointers<T> p = pointers<T>(slice);
  return {p.weights, slice.gradients.as<T>().data(), {p.state[0], p.state[1], p.state[2]}, p.size};
}

/// Multiply-adds of one thread as this compiler makes them from plain loops, in 1e9 FLOP/s.
template <class T>
double multiply_add_rate() {
  constexpr int kChains = 64, kRounds = 2'000'000;
  std::vector<T> sums(kChains, T{1});
  const volatile T factor = static_cast<T>(0.999), addend = static_cast<T>(1e-3);
  const T f = factor, a = addend;
  const system::Stopwatch watch;
  for (int round = 0; round < kRounds; ++round) {
    for (T& sum : sums) sum = sum * f + a;
  }
  const volatile T keep = sums[kRounds % kChains];
  static_cast<void>(keep);
  return 2.0 * kChains * kRounds / watch.seconds() / 1e9;
}

double triad_rate(const compute::Together& together) {
  constexpr std::size_t kElements = 16 << 20;
  std::vector<double> a(kElements, 0.0), b(kElements, 1.0), c(kElements, 2.0);
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    together.meet();
    const system::Stopwatch watch;
    for (std::size_t i = 0; i < kElements; ++i) a[i] = b[i] + 3.0 * c[i];
    best = std::max(best, 24.0 * kElements / together.slowest(watch.seconds()) / 1e9);
  }
  const volatile double keep = a[kElements / 2];
  static_cast<void>(keep);
  return best;
}

template <class T>
class ReferenceBackend final : public compute::Backend {
 public:
  explicit ReferenceBackend(Factors factors)
      : factors_(factors),
        facts_{.name = "reference",
               .description = std::string("plain loops, ") + (sizeof(T) == 8 ? "double" : "float") +
                              ", 1 thread",
               .dtype = dtype_of<T>()} {}

  const compute::BackendFacts& facts() const override { return facts_; }

  std::unique_ptr<compute::Program> compile(const model::Graph& graph,
                                            const compute::CompileOptions& options,
                                            const compute::ArenaSource& arenas) override {
    return std::make_unique<reference::ReferenceProgram<T>>(graph, options, arenas, factors_);
  }

  std::unique_ptr<compute::Update> make_update(const optim::UpdatePlan& plan) override {
    return compute::make_update_by_slices(
        *this, plan, [](const optim::UpdateStep& s, double decay, const optim::UpdateSlice& slice) {
          optim::update_elements(s.rule, pointers<T>(slice), s.learning_rate, decay, s.step);
        });
  }

  void change_gradients(const optim::GradientOperation& operation,
                        const optim::UpdateSlice& slice) override {
    std::visit([&](const auto& op) { optim::gradient_math(op, gradient_pointers<T>(slice)); },
               operation);
  }

  void sum(std::span<const Array> src, const Array& dst) override { comm::sum_plainly(src, dst); }

  compute::Pending<std::vector<double>> block_norms(
      std::span<const compute::ArenaPart> parts) override {
    std::vector<double> sums;
    for (const compute::ArenaPart& part : parts) {
      for (std::size_t i = 0; i < compute::norm_blocks({&part, 1}); ++i) {
        const auto block = optim::norm_block(part.values.as<T>(), part.range.begin, i);
        sums.push_back(optim::block_sum_of_squares(block.data(), block.size()));
      }
    }
    return sums;
  }

  compute::Limits measure_limits(const compute::Together& together) override {
    return {multiply_add_rate<T>(), triad_rate(together)};
  }

 private:
  Factors factors_;
  compute::BackendFacts facts_;
};

}  // namespace

std::unique_ptr<compute::Backend> make_reference_backend(DType precision, Factors factors) {
  if (precision == DType::f64) return std::make_unique<ReferenceBackend<double>>(factors);
  return std::make_unique<ReferenceBackend<float>>(factors);
}

}  // namespace cputrain::reference
