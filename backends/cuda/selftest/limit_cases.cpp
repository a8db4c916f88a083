#include <fmt/format.h>

#include "backends/cuda/kernels/limits.h"
#include "backends/cuda/selftest/guarded_array.h"
#include "backends/cuda/selftest/kernel_cases.h"
#include "backends/cuda/selftest/plain_products.h"
#include "compute/selftest_case.h"

namespace cputrain::cuda {
namespace {

using compute::CaseNumbers;
using compute::CasePlan;
using compute::RunOutputs;

/// a = b + 3 c of small whole numbers: exact.
CasePlan triad_plan(std::uint64_t seed, const OwnedStream& stream) {
  CaseNumbers numbers(seed, "triad");
  const auto size = static_cast<std::size_t>(numbers.odd_between(501, 3001));
  const auto b = numbers.whole(size, -99, 99), c = numbers.whole(size, -99, 99);
  const auto compute = [=, &stream](int run) {
    const GuardedArray<double> left("b", stream, {b.begin(), b.end()});
    const GuardedArray<double> right("c", stream, {c.begin(), c.end()});
    const GuardedArray<double> sum("a", stream, std::vector<double>(size, poison_of(run)));
    launch_triad(stream.get(), size, 3, left.data(), right.data(), sum.data());
    RunOutputs outputs;
    sum.put_into(outputs);
    return outputs;
  };
  const auto expect = [=] {
    std::vector<double> a;
    for (std::size_t i = 0; i < size; ++i) a.push_back(b[i] + 3.0 * c[i]);
    RunOutputs outputs;
    outputs.add("a", a);
    return outputs;
  };
  return {fmt::format("triad of {} numbers", size), 0, compute, expect};
}

/// All numbers are above zero, so nothing cancels.
CasePlan products_plan(Numbers format, std::uint64_t seed, const OwnedStream& stream) {
  CaseNumbers numbers(seed, "products of tensor cores");
  const int multiprocessors = numbers.between(1, 3), rounds = numbers.between(1, 5);
  const std::size_t size = multiply_add_sums(multiprocessors);
  const auto compute = [=, &stream](int run) {
    const GuardedArray<float> sums("sums", stream, std::vector<float>(size, poison_of(run)));
    launch_multiply_adds(stream.get(), format, multiprocessors, rounds, sums.data());
    RunOutputs outputs;
    sums.put_into(outputs);
    return outputs;
  };
  const auto expect = [=] {
    constexpr std::size_t kThreadsOfBlock = 256;
    std::vector<double> sums;
    for (std::size_t i = 0; i < size; ++i) {
      sums.push_back(rounds * sum_of_thread(format, static_cast<int>(i % kThreadsOfBlock)));
    }
    RunOutputs outputs;
    outputs.add("sums", sums);
    return outputs;
  };
  return {fmt::format("products of tensor cores in {}, {} rounds", word_of(format), rounds), 1e-5,
          compute, expect};
}

}  // namespace

std::vector<CasePlan> limit_plans(std::uint64_t seed, const OwnedStream& stream) {
  return {triad_plan(seed, stream), products_plan(Numbers::exact, seed, stream),
          products_plan(Numbers::tf32, seed, stream), products_plan(Numbers::bf16, seed, stream)};
}

}  // namespace cputrain::cuda
