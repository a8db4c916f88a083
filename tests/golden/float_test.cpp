// The float error of the cpu backend beside PyTorch's own, for the same weights and pictures.
//
// Gradients in float differ from those in double by rounding, some 1e-6 of a tensor's norm, and now
// and then by a jump: rounding changes which of two nearly equal values wins a max pool, and a
// gradient goes elsewhere (up to 1e-3 of the norm). Jumps are a matter of luck, so an allowed error
// is a multiple of the worst that PyTorch has in any of the batches; and since jumps are rare, the
// level of rounding shows in each tensor's best batch, and is held to the same multiple.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "golden/golden_file.h"
#include "golden/replica.h"

namespace cputrain::golden {
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

class FloatError : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!cpu_backend_available()) GTEST_SKIP() << "this build has no oneDNN";
  }
};

TEST_P(FloatError, OfTheCpuBackendIsNearPyTorchs) {
  const File file = load(GetParam());
  const int batch = file.float_batch;
  const auto exact_backend = make_reference_backend(DType::f64);
  const auto direct_backend = make_cpu_backend(2, {});
  const auto winograd_backend = make_cpu_backend(2, {.winograd = true});
  Replica exact(*exact_backend, file.graph, keras_start(file.seed), {batch});
  Replica direct(*direct_backend, file.graph, keras_start(file.seed), {batch});
  Replica winograd(*winograd_backend, file.graph, keras_start(file.seed), {batch});

  std::vector<FloatErrors> direct_errors, winograd_errors;
  for (int i = 0; i < static_cast<int>(file.float_errors.size()); ++i) {
    const Pictures images = pictures(file, i * batch, batch);
    const double loss = exact.step(images, nullptr, 0).mean_loss();
    EXPECT_NEAR(direct.step(images, nullptr, 0).mean_loss(), loss, 1e-5 * loss);
    EXPECT_NEAR(winograd.step(images, nullptr, 0).mean_loss(), loss, 1e-4 * loss);
    FloatErrors direct_error, winograd_error;
    for (std::size_t p = 0; p < exact.parameters().size(); ++p) {
      const std::string& name = exact.parameters()[p].name;
      const std::vector<double> gradients = exact.gradients(p);
      direct_error[name] = difference(direct.gradients(p), gradients).relative();
      winograd_error[name] = difference(winograd.gradients(p), gradients).relative();
    }
    direct_errors.push_back(direct_error);
    winograd_errors.push_back(winograd_error);
  }

  const Level theirs = level_of(file.float_errors), ours = level_of(direct_errors),
              with_winograd = level_of(winograd_errors);
  std::printf(
      "relative error, worst and rounding: PyTorch %.1e %.1e, direct %.1e %.1e, "
      "winograd allowed %.1e %.1e\n",
      theirs.worst, theirs.rounding, ours.worst, ours.rounding, with_winograd.worst,
      with_winograd.rounding);
  EXPECT_LE(ours.worst, 2 * theirs.worst);
  EXPECT_LE(ours.rounding, 2 * theirs.rounding);
  EXPECT_LE(with_winograd.worst, 5 * theirs.worst);
  EXPECT_LE(with_winograd.rounding, 5 * theirs.rounding);
}

INSTANTIATE_TEST_SUITE_P(Networks, FloatError, testing::Values("layers", "dogcat"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace cputrain::golden
