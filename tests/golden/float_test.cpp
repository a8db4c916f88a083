// The float error of the cpu backend beside PyTorch's own, for the same weights and images.
//
// Gradients in float differ from those in double by rounding, some 1e-6 of a tensor's norm, and now
// and then by a jump: rounding changes which of two nearly equal values wins a max pool, and a
// gradient goes elsewhere (3.3e-3 of the norm with oneDNN's kernels for AVX2, 7e-4 in PyTorch).
// Jumps are a matter of luck, so an allowed error is some such jump's, or a multiple of the worst
// that PyTorch has in any of the batches; and since jumps are rare, the level of rounding shows
// in each tensor's best batch, and is held to that multiple alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/replica.h"

namespace cputrain::golden::float_test {
namespace {

/// The worst tensor of the worst batch, and the worst tensor when each is taken at its best.
struct Level {
  double worst = 0, rounding = 0;
};

Level level_of(const std::vector<FloatErrors>& batches) {
  Level level;
  for (const auto& [name, first] : batches.front()) {
    double best = first;
    for (const FloatErrors& errors : batches) {
      level.worst = std::max(level.worst, errors.at(name));
      best = std::min(best, errors.at(name));
    }
    level.rounding = std::max(level.rounding, best);
  }
  return level;
}

class FloatError : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!cpu::cpu_backend_available()) GTEST_SKIP() << "this build has no oneDNN";
  }
};

/// A way to compute, and how many times PyTorch's error is allowed.
struct Contender {
  std::string name;
  cpu::KernelChoice kernels;
  double loss_tolerance, times;
  std::unique_ptr<compute::Backend> backend{};
  std::unique_ptr<Replica> replica{};
  std::vector<FloatErrors> errors{};
};

std::vector<Contender> contenders(const File& file) {
  std::vector<Contender> all;
  all.push_back({"direct", {}, 1e-5, 2});
  all.push_back({"zeros skipped", {.skip_zeros = true}, 1e-5, 2});
  all.push_back({"winograd allowed", {.winograd = true}, 1e-4, 5});
  for (Contender& one : all) {
    one.backend = cpu::make_cpu_backend(2, one.kernels);
    one.replica = std::make_unique<Replica>(*one.backend, file.graph, keras_start(file.seed),
                                            std::vector{file.float_batch});
  }
  return all;
}

TEST_P(FloatError, OfTheCpuBackendIsNearPyTorchs) {
  const File file = load(GetParam());
  const int batch = file.float_batch;
  const auto exact_backend = reference::make_reference_backend(DType::f64);
  Replica exact(*exact_backend, file.graph, keras_start(file.seed), {batch});
  std::vector<Contender> ours = contenders(file);
  for (int i = 0; i < static_cast<int>(file.float_errors.size()); ++i) {
    const Samples images = samples(file, i * batch, batch);
    const double loss = exact.step(images, nullptr, 0).mean_loss();
    for (Contender& one : ours) {
      EXPECT_NEAR(one.replica->step(images, nullptr, 0).mean_loss(), loss,
                  one.loss_tolerance * loss);
      FloatErrors errors;
      for (std::size_t p = 0; p < exact.parameters().size(); ++p) {
        errors[exact.parameters()[p].name] =
            difference(one.replica->gradients(p), exact.gradients(p)).relative();
      }
      one.errors.push_back(errors);
    }
  }
  const Level theirs = level_of(file.float_errors);
  std::printf("relative error, worst and rounding: PyTorch %.1e %.1e", theirs.worst,
              theirs.rounding);
  for (const Contender& one : ours) {
    const Level level = level_of(one.errors);
    std::printf(", %s %.1e %.1e", one.name.c_str(), level.worst, level.rounding);
    constexpr double kJump = 5e-3;
    EXPECT_LE(level.worst, std::max(kJump, one.times * theirs.worst)) << one.name;
    EXPECT_LE(level.rounding, one.times * theirs.rounding) << one.name;
  }
  std::puts("");
}

INSTANTIATE_TEST_SUITE_P(Networks, FloatError, ::testing::Values("layers", "dogcat"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace cputrain::golden::float_test
