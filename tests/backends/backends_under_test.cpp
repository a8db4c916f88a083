#include "tests/backends/backends_under_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "core/error.h"
#include "tests/backends/trial.h"
#include "tests/support/locked_backend.h"
#include "tests/support/refusal.h"

namespace cputrain::testing {

std::vector<BackendUnderTest> backends_under_test() {
  std::vector<BackendUnderTest> list{
      {"reference_float", [] { return reference::make_reference_backend(DType::f32); }, 1e-5},
      {"locked", [] { return make_locked_backend(reference::make_reference_backend(DType::f32)); },
       1e-5}};
  std::ranges::copy(cuda_backends_under_test(), std::back_inserter(list));
  if (!cpu::cpu_backend_available()) return list;
  list.push_back({"cpu_direct", [] { return cpu::make_cpu_backend(1, {}); }, 1e-5});
  list.push_back({"cpu_direct_2_threads", [] { return cpu::make_cpu_backend(2, {}); }, 1e-5});
  list.push_back(
      {"cpu_winograd", [] { return cpu::make_cpu_backend(1, {.winograd = true}); }, 1e-4});
  list.push_back({"cpu_winograd_3_threads",
                  [] { return cpu::make_cpu_backend(3, {.winograd = true}); }, 1e-4});
  const cpu::KernelChoice skipping{.skip_zeros = true},
      all{.winograd = true, .skip_zeros = true, .measure = true};
  list.push_back({"cpu_skips_zeros", [=] { return cpu::make_cpu_backend(1, skipping); }, 1e-5});
  list.push_back(
      {"cpu_skips_zeros_2_threads", [=] { return cpu::make_cpu_backend(2, skipping); }, 1e-5});
  const cpu::KernelChoice floats{.float_tiles = cpu::KernelChoice::Tiles::emulated};
  list.push_back({"cpu_float_tiles", [=] { return cpu::make_cpu_backend(1, floats); }, 1e-5});
  list.push_back({"cpu_measures", [=] { return cpu::make_cpu_backend(2, all); }, 1e-4, false});
  return list;
}

void expect_refusal(const BackendUnderTest& under_test, const model::Graph& graph) {
  const auto backend = under_test.make();
  testing::refused(ExitCode::usage, [&] { const Trial trial(*backend, graph, {1}); });
}

std::vector<BackendUnderTest> narrow_backends_under_test() {
  constexpr double kTolerance = 2e-2;
  std::vector<BackendUnderTest> list{
      {"reference_bf16",
       [] { return reference::make_reference_backend(DType::f32, reference::Factors::bf16); },
       kTolerance}};
  if (!cpu::cpu_backend_available()) return list;
  for (const int threads : {1, 2}) {
    list.push_back({threads == 1 ? "cpu_tiles" : "cpu_tiles_2_threads",
                    [=] {
                      return cpu::make_cpu_backend(threads,
                                                   {.tiles = cpu::KernelChoice::Tiles::emulated});
                    },
                    kTolerance});
  }
  if (!cpu::cpu_backend_has_bf16()) return list;
  list.push_back({"cpu_bf16", [] { return cpu::make_cpu_backend(1, {.bf16 = true}); }, kTolerance});
  list.push_back(
      {"cpu_bf16_2_threads", [] { return cpu::make_cpu_backend(2, {.bf16 = true}); }, kTolerance});
  return list;
}

}  // namespace cputrain::testing
