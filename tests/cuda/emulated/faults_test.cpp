#include <algorithm>
#include <fstream>
#include <iostream>

#include "emulated/device_fixture.h"
#include "emulated/shadow.h"
#include "emulated/test_kernels.h"

/// Every kernel of faulty_kernels.cu is wrong in one way: what is reported, of which byte and line.
namespace cputrain::emulated {
namespace {

/// A plain kernel's accesses are not looked at. What becomes of the fault then:
enum class Plain {
  unseen,  ///< wrong numbers, or right ones by luck
  seen,    ///< the same report
  caught   ///< the address is bad: a report without the line, or with it
};

struct Planted {
  const char* kernel;
  const char* report;
  const char* where;  ///< in the report, too
  Plain plain = Plain::unseen;
};

std::ostream& operator<<(std::ostream& out, const Planted& planted) {
  return out << planted.kernel;
}

const std::vector<Planted> kPlanted = {
    {"reads_behind", "out of bounds read", "byte 256 of \"x\"", Plain::caught},
    {"writes_before", "out of bounds write", "byte -4 of \"y\""},
    {"reads_unwritten", "read of memory nobody wrote", "byte 512 of \"y\""},
    {"reads_unwritten_shared", "read of memory nobody wrote", "byte 28 of a shared variable"},
    {"no_syncwarp", "race: reads what was written", "written by thread 0 "},
    {"syncwarp_between_warps", "race: reads what was written", "byte 252 of a shared variable"},
    {"overwrites_what_is_read", "race: ", "of a shared variable"},
    {"two_writers_of_shared", "race: two writes", "byte 0 of a shared variable"},
    {"two_writers_of_a_byte", "race: two writes", "byte 0 of \"bytes\""},
    {"blocks_write_the_same", "race: two writes", "by another block"},
    {"blocks_read_each_other", "race: reads what was written", "byte 0 of \"y\""},
    {"neighbour_in_global", "race: reads what was written", "byte 0 of \"y\""},
    {"atomic_and_plain", "race: atomic and plain access", "byte 0 of \"x\""},
    {"reads_host", "read of host memory", "host address"},
    {"writes_host", "write of host memory", "host address"},
    {"misaligned", "misaligned access", "byte 4 of \"x\""},
    {"index_of_local_array", "index out of bounds", "index 4 of 'float [4]'"},
    {"index_of_member", "index out of bounds", "index 64 of 'float [64]'"},
    {"shifts_too_far", "shift by too many bits", "by 32"},
    {"null_pointer", "null pointer", "const float", Plain::caught},
    {"behind_shared_variable", "out of bounds write", "byte 256 of a shared variable"},
    {"behind_dynamic_shared", "out of bounds write", "byte 128 of the launch's shared memory"},
    {"no_wait_for_copy", "cp.async is still writing", "byte 0 of a shared variable"},
    {"waits_for_one_group_too_few", "cp.async is still writing", "byte 0 of a shared variable"},
    {"no_barrier_behind_wait", "race: reads what was written", "byte 0 of a shared variable"},
    {"copy_that_nobody_waits_for", "cp.async that nobody waited for", "has returned", Plain::seen},
    {"copies_behind", "out of bounds read", "byte 256 of \"x\"", Plain::caught},
    {"misaligned_copy", "misaligned access", "cp.async needs 16 bytes", Plain::seen},
    {"barrier_in_branch", "divergence", "__syncthreads", Plain::seen},
    {"returns_before_barrier", "divergence", "24 threads have returned", Plain::seen},
    {"lanes_leave_before_shuffle", "divergence", "24 threads have returned", Plain::seen},
    {"lanes_at_two_shuffles", "divergence within a warp", "__shfl_xor_sync", Plain::seen},
    {"shuffle_from_outside", "reads lane 20", "not in the mask", Plain::seen},
    {"lane_not_in_mask", "divergence within a warp", "not in the mask", Plain::seen},
    {"matrices_of_global", "ldmatrix of memory that is not shared", "thread", Plain::seen},
    {"misaligned_matrices", "misaligned access", "byte 4 of a shared variable", Plain::seen},
    {"local_variable_of_another", "reads a local variable of another thread", "thread"},
    {"divides_by_zero", "integer division by zero", "thread", Plain::seen},
    {"too_many_local_variables", "too many local variables", "thread", Plain::seen},
};

/// "faulty_kernels.cu:12" for each line of the kernel that is marked.
std::vector<std::string> marked_lines(const std::string& kernel) {
  std::ifstream source(CPUTRAIN_FAULTY_KERNELS);
  std::vector<std::string> lines;
  std::string line;
  bool inside = false;
  for (int number = 1; std::getline(source, line); ++number) {
    inside = inside || contains(line, "void " + kernel + "(");
    if (inside && contains(line, "// FAULT")) {
      lines.push_back("faulty_kernels.cu:" + std::to_string(number));
    }
    if (inside && line == "}") break;
  }
  return lines;
}

class Faults : public OnDevice, public testing::WithParamInterface<Planted> {
 protected:
  std::optional<std::string> report(const Settings& settings) const {
    restart(settings);
    const DeviceArray<float> x(std::vector<float>(64, 1), "x"), y(256, "y");
    const DeviceArray<std::uint8_t> bytes(64, "bytes");
    std::vector<float> host(64, 1);
    const auto message = message_of([&] {
      const cuda::OwnedStream stream;
      launch_faulty(GetParam().kernel, stream.get(),
                    {x.data(), y.data(), bytes.data(), host.data()});
      stream.synchronize();
    });
    restart({});
    return message;
  }
};

TEST_P(Faults, IsReportedWithArrayByteAndLine) {
  const Planted& planted = GetParam();
  const auto message = report({});
  if (!kernels_are_checked() && planted.plain == Plain::unseen) GTEST_SKIP() << "cannot be seen";
  ASSERT_TRUE(message) << "nothing was reported";
  EXPECT_PRED2(contains, *message, "kernel " + std::string(planted.kernel) + ": ");
  if (!kernels_are_checked() && planted.plain == Plain::caught) {
    // With the sanitizer of undefined behaviour plain kernels look at their pointers, too.
    EXPECT_TRUE(contains(*message, "bad address: thread (") || contains(*message, planted.report))
        << *message;
    return;
  }
  EXPECT_PRED2(contains, *message, planted.report);
  EXPECT_PRED2(contains, *message, planted.where);
  const auto lines = marked_lines(planted.kernel);
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(),
                          [&](const std::string& l) { return message->ends_with(", at " + l); }))
      << *message << "\nshould end with " << lines.front();
}

TEST_P(Faults, IsReportedInEveryOrder) {
  if (!kernels_are_checked() && GetParam().plain == Plain::unseen) GTEST_SKIP();
  EXPECT_TRUE(report({.order = Order::reverse}));
  for (const unsigned seed : {1u, 2u, 3u}) {
    EXPECT_TRUE(report({.order = Order::random, .seed = seed})) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Faults, testing::ValuesIn(kPlanted),
                         [](const auto& test) { return std::string(test.param.kernel); });

TEST(FaultyKernels, AllAreTested) {
  std::vector<std::string> tested;
  for (const Planted& p : kPlanted) tested.push_back(p.kernel);
  std::sort(tested.begin(), tested.end());
  EXPECT_EQ(tested, faulty_kernels());
}

using AfterFault = OnDevice;

TEST_F(AfterFault, TheDeviceStaysFailedUntilItIsRestarted) {
  const DeviceArray<float> x(std::vector<float>(64, 1), "x"), y(256, "y");
  const cuda::OwnedStream stream;
  launch_faulty("returns_before_barrier", stream.get(), {x.data(), y.data(), nullptr, nullptr});
  const auto first = message_of([&] { stream.synchronize(); });
  ASSERT_TRUE(first);
  EXPECT_EQ(message_of([&] { stream.synchronize(); }), first);
  EXPECT_EQ(message_of([&] { cuda::clear_async(y.data(), 4, stream.get()); }), first);
  EXPECT_EQ(message_of([&] { cuda::check_launch("next"); }), first);
  EXPECT_EQ(message_of([&] { const cuda::DeviceBlock more(16, "more"); }), first);
  restart({});
  launch_scale(stream.get(), 64, nullptr, 2, x.data(), y.data());
  stream.synchronize();
  EXPECT_EQ(y.values(64), std::vector<float>(64, 2));
}

}  // namespace
}  // namespace cputrain::emulated
