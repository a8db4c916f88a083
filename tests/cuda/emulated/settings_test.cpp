#include <cstdlib>

#include "emulated/device_fixture.h"
#include "emulated/shadow.h"
#include "emulated/test_kernels.h"

namespace cputrain::emulated {
namespace {

/// Variables of the environment as a test wants them.
class Environment : public testing::Test {
 protected:
  ~Environment() override {
    for (const char* name : {"CPUTRAIN_EMULATED_GPU", "CPUTRAIN_EMULATED_ORDER",
                             "CPUTRAIN_EMULATED_DEVICES", "CPUTRAIN_EMULATED_KERNELS"}) {
      unsetenv(name);
    }
  }
  static std::optional<std::string> refusal(const char* name, const char* value) {
    setenv(name, value, 1);
    const auto message = message_of<Error>([] { (void)settings_of_environment(); });
    unsetenv(name);
    return message;
  }
};

TEST_F(Environment, ChoosesGpuOrderDevicesAndKernels) {
  setenv("CPUTRAIN_EMULATED_GPU", "a100", 1);
  setenv("CPUTRAIN_EMULATED_ORDER", "random:77", 1);
  setenv("CPUTRAIN_EMULATED_DEVICES", "4", 1);
  setenv("CPUTRAIN_EMULATED_KERNELS", "skip", 1);
  const Settings s = settings_of_environment();
  EXPECT_EQ(s.gpu, Gpu::a100);
  setenv("CPUTRAIN_EMULATED_GPU", "b200", 1);
  EXPECT_EQ(settings_of_environment().gpu, Gpu::b200);
  EXPECT_EQ(s.order, Order::random);
  EXPECT_EQ(s.seed, 77u);
  EXPECT_EQ(s.devices, 4);
  EXPECT_FALSE(s.runs_kernels);
}

TEST_F(Environment, SaysWhatItDoesNotKnow) {
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, const char*>>{{"CPUTRAIN_EMULATED_GPU", "v100"},
                                                        {"CPUTRAIN_EMULATED_ORDER", "backward"},
                                                        {"CPUTRAIN_EMULATED_ORDER", "random:"},
                                                        {"CPUTRAIN_EMULATED_ORDER", "random:3x"},
                                                        {"CPUTRAIN_EMULATED_DEVICES", "0"},
                                                        {"CPUTRAIN_EMULATED_DEVICES", "65"},
                                                        {"CPUTRAIN_EMULATED_DEVICES", "two"},
                                                        {"CPUTRAIN_EMULATED_KERNELS", "no"}}) {
    EXPECT_PRED2(contains, refusal(name, value).value_or(""),
                 std::string(name) + "=" + value + " is not known; give ");
  }
}

TEST_F(Environment, CountsBytesOfCheckedKernelsAlone) {
  if (!kernels_are_checked()) {
    EXPECT_PRED2(contains, refusal("CPUTRAIN_EMULATED_KERNELS", "count").value_or(""),
                 "set CPUTRAIN_EMULATED=checked");
    return;
  }
  setenv("CPUTRAIN_EMULATED_KERNELS", "count", 1);
  EXPECT_TRUE(settings_of_environment().counts_bytes);
  EXPECT_TRUE(settings_of_environment().runs_kernels);
}

using Orders = OnDevice;

/// In which order the threads of two blocks of 40 came.
std::vector<unsigned> arrivals(const Settings& s) {
  restart(s);
  const DeviceArray<unsigned> next(std::vector<unsigned>(1, 0), "next"), out(80, "out");
  const cuda::OwnedStream stream;
  launch_arrivals(stream.get(), 2, 40, next.data(), out.data());
  stream.synchronize();
  return out.values();
}

TEST_F(Orders, AreAsTheSettingsSay) {
  std::vector<unsigned> forward(80), reverse(80);
  for (unsigned i = 0; i < 80; ++i) {
    forward[i] = i;
    reverse[i] = 79 - i;
  }
  EXPECT_EQ(arrivals({}), forward);
  EXPECT_EQ(arrivals({.order = Order::reverse}), reverse);
  const auto some = arrivals({.order = Order::random, .seed = 5});
  EXPECT_NE(some, forward);
  EXPECT_EQ(arrivals({.order = Order::random, .seed = 5}), some);
  EXPECT_NE(arrivals({.order = Order::random, .seed = 6}), some);
  EXPECT_EQ(std::vector<unsigned>(some).size(), 80u);
}

}  // namespace
}  // namespace cputrain::emulated
