// Backends as the program makes them: what a request asks for reaches the backend that it names.
#include "composition/services.h"

#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "core/error.h"
#include "tests/support/refusal.h"

namespace cputrain::composition {
namespace {

class Services : public ::testing::Test {
 protected:
  std::string kernels_of(const training::BackendRequest& request) {
    return services_.make_backend(request)->facts().kernels;
  }
  bool uses(const training::BackendRequest& request, const std::string& what) {
    return kernels_of(request).find(what) != std::string::npos;
  }

  system::SignalWatch signals_;
  placement::Launcher launcher_;  // nobody's
  training::Services services_ = make_services(launcher_, signals_);
};

TEST_F(Services, OptionsTakeAwayWhatTheCpuBackendMayUse) {
  if (!cpu::cpu_backend_available()) GTEST_SKIP() << "this build has no oneDNN";
  EXPECT_TRUE(uses({.name = "cpu"}, "Winograd"));
  EXPECT_TRUE(uses({.name = "cpu"}, "zeros skipped"));
  EXPECT_FALSE(uses({.name = "cpu", .options = {"no-winograd"}}, "Winograd"));
  EXPECT_TRUE(uses({.name = "cpu", .options = {"no-winograd"}}, "zeros skipped"));
  EXPECT_FALSE(uses({.name = "cpu", .options = {"no-skip-zeros"}}, "zeros skipped"));
  EXPECT_FALSE(uses({.name = "cpu"}, "bf16"));
  EXPECT_TRUE(uses({.name = "cpu", .precision = Precision::bf16}, "bf16"));
}

/// Where this machine has AMX its kernels are allowed; emulated ones, which are slow, are not.
TEST_F(Services, TilesAreTheMachinesOrNone) {
  if (!cpu::cpu_backend_available()) GTEST_SKIP() << "this build has no oneDNN";
  const training::BackendRequest bf16{.name = "cpu", .precision = Precision::bf16};
  training::BackendRequest without = bf16;
  without.options = {"no-tiles"};
  EXPECT_FALSE(uses({.name = "cpu"}, "emulated"));
  EXPECT_FALSE(uses({.name = "cpu", .options = {"no-tiles"}}, "own AMX"));
  EXPECT_FALSE(uses({.name = "cpu", .reproducible = true}, "own AMX"));
  EXPECT_FALSE(uses({.name = "cpu", .precision = Precision::exact}, "own AMX"));
  if (!cpu::cpu_backend_has_bf16()) return;
  EXPECT_EQ(uses({.name = "cpu"}, "own AMX of floats"), uses(bf16, "own AMX"));
  EXPECT_FALSE(uses(bf16, "emulated"));
  EXPECT_FALSE(uses(without, "own AMX"));
  EXPECT_TRUE(uses(without, "bf16"));
}

TEST_F(Services, PrecisionsDecideTheTypeOfArrays) {
  for (const auto& [precision, type] : {std::pair(Precision::f32, DType::f32),
                                        {Precision::exact, DType::f32},
                                        {Precision::f64, DType::f64}}) {
    EXPECT_EQ(services_.make_backend({.name = "reference", .precision = precision})->dtype(), type)
        << word_of(precision);
  }
}

TEST_F(Services, AnUnknownOptionIsRefusedByName) {
  const std::string text = testing::refused(ExitCode::usage, [&] {
    services_.make_backend({.name = "reference", .options = {"no-winograd"}});
  });
  EXPECT_NE(text.find("no-winograd"), std::string::npos) << text;
}

}  // namespace
}  // namespace cputrain::composition
