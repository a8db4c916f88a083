#include "system/limits/control_group.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace cputrain::system {
namespace {

/// A file system with control groups in it, below a directory of its own.
class ControlGroups : public ::testing::Test {
 protected:
  ControlGroups() { write("proc/self/cgroup", ""); }
  ~ControlGroups() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const auto file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  /// The kernel's number of a group.
  std::uint64_t number_of(const std::string& folder) const {
    struct stat about {};
    return ::stat((root_ / folder).c_str(), &about) == 0 ? about.st_ino : 0;
  }
  GroupLimits read() const { return read_group_limits(root_); }

 private:
  std::filesystem::path root_ = std::filesystem::path(::testing::TempDir()) /
                                ("groups-" + std::to_string(getpid()) + "-" +
                                 ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ControlGroups, NoneAreNoLimit) {
  EXPECT_EQ(read().cpus, 0);
  EXPECT_EQ(read().memory_bytes, 0);
  EXPECT_EQ(read().cpu_group + read().memory_group, 0u);
}

TEST_F(ControlGroups, VersionTwo) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "250000 100000\n");
  write("sys/fs/cgroup/memory.max", "1000000\n");
  EXPECT_EQ(read().cpus, 2.5);
  EXPECT_EQ(read().memory_bytes, 1e6);
}

TEST_F(ControlGroups, VersionTwoWithoutLimit) {
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/user/job/memory.max", "max\n");
  EXPECT_EQ(read().cpus, 0);
  EXPECT_EQ(read().memory_bytes, 0);
}

TEST_F(ControlGroups, TheTightestGroupCounts) {
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/job/cpu.max", "400000 100000\n");
  write("sys/fs/cgroup/user/cpu.max", "300000 100000\n");
  write("sys/fs/cgroup/user/job/memory.max", "5000\n");
  write("sys/fs/cgroup/user/memory.max", "6000\n");
  EXPECT_EQ(read().cpus, 3);
  EXPECT_EQ(read().memory_bytes, 5000);
  EXPECT_EQ(read().cpu_group, number_of("sys/fs/cgroup/user"));
  EXPECT_EQ(read().memory_group, number_of("sys/fs/cgroup/user/job"));
}

TEST_F(ControlGroups, VersionOne) {
  write("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/job\n1:name=systemd:/x\n0::/\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "150000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "50000\n");
  write("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "4096\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read().cpus, 3);
  EXPECT_EQ(read().memory_bytes, 4096);
}

TEST_F(ControlGroups, VersionOneWithoutLimit) {
  write("proc/self/cgroup", "5:memory:/\n4:cpu:/\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read().cpus, 0);
  EXPECT_EQ(read().memory_bytes, 0);
}

/// Docker shows the host's path of the group, but mounts the group itself.
TEST_F(ControlGroups, APathThatIsNotThereMeansTheMount) {
  write("proc/self/cgroup", "4:cpu:/docker/0123\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read().cpus, 2);
}

/// What is held counts but for files that the system would drop, at each level for itself.
TEST_F(ControlGroups, MemoryLeftIsThatOfTheLevelWithTheLeast) {
  write("proc/self/cgroup", "0::/job/step/task\n");
  write("sys/fs/cgroup/job/step/task/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/task/memory.current", "50\n");
  write("sys/fs/cgroup/job/step/memory.max", "10000\n");
  write("sys/fs/cgroup/job/step/memory.current", "3000\n");
  write("sys/fs/cgroup/job/memory.max", "12000\n");
  write("sys/fs/cgroup/job/memory.current", "9000\n");
  write("sys/fs/cgroup/job/memory.stat", "anon 8000\ninactive_file 1000\nactive_file 50\n");
  EXPECT_EQ(read().memory_left, 4000);
  EXPECT_EQ(read().memory_bytes, 10000);
}

TEST_F(ControlGroups, MemoryLeftInVersionOne) {
  write("proc/self/cgroup", "3:memory:/slurm/job_7/step_0\n");
  write("sys/fs/cgroup/memory/slurm/job_7/step_0/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/slurm/job_7/step_0/memory.usage_in_bytes", "500\n");
  write("sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "8000\n");
  write("sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes", "7000\n");
  write("sys/fs/cgroup/memory/slurm/job_7/memory.stat",
        "inactive_file 1\ntotal_inactive_file 2500\n");
  EXPECT_EQ(read().memory_left, 3500);
}

TEST_F(ControlGroups, MemoryLeftIsNeverLessThanNothing) {
  write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(read().memory_left, std::nullopt);
  write("sys/fs/cgroup/memory.max", "1000\n");
  write("sys/fs/cgroup/memory.current", "1500\n");
  EXPECT_EQ(read().memory_left, 0);
}

TEST_F(ControlGroups, MemoryLeftIsTheLimitWhereNothingSaysWhatIsUsed) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1000\n");
  EXPECT_EQ(read().memory_left, 1000);
}

TEST_F(ControlGroups, WhatIsNoNumberIsNoLimit) {
  for (const char* text :
       {"", "max\n", "-5\n", "garbage\n", "nan\n", "1e999\n", "99999999999999999999\n"}) {
    write("proc/self/cgroup", "0::/\n");
    write("sys/fs/cgroup/memory.max", text);
    write("sys/fs/cgroup/pids.max", text);
    write("sys/fs/cgroup/cpu.max", text);
    const GroupLimits limits = read();
    EXPECT_EQ(limits.memory_left, std::nullopt) << text;
    EXPECT_EQ(limits.memory_bytes + limits.threads + limits.cpus, 0) << text;
  }
}

/// Above it nothing is ended, but everything crawls.
TEST_F(ControlGroups, WhatSlowsDownIsALimit) {
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/memory.max", "9000\n");
  write("sys/fs/cgroup/job/memory.high", "7000\n");
  write("sys/fs/cgroup/job/memory.current", "1000\n");
  EXPECT_EQ(read().memory_left, 6000);
}

/// Namespaces of control groups: a group outside of ours is shown as "/../..".
TEST_F(ControlGroups, PathsOfNamespaces) {
  write("proc/self/cgroup", "0::/../other/task\n");
  write("sys/fs/cgroup/memory.max", "6000\n");
  write("sys/memory.max", "1\n");
  EXPECT_EQ(read().memory_bytes, 6000);
}

/// A container that shows the host's path and has groups of its own.
TEST_F(ControlGroups, TheEndOfAPathLeadsToOurGroup) {
  write("proc/self/cgroup", "0::/docker/0123/batch/job\n");
  write("sys/fs/cgroup/batch/job/memory.max", "max\n");
  write("sys/fs/cgroup/batch/memory.max", "5000\n");
  write("sys/fs/cgroup/memory.max", "8000\n");
  EXPECT_EQ(read().memory_bytes, 5000);
}

TEST_F(ControlGroups, Threads) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/pids.max", "max\n");
  write("sys/fs/cgroup/a/pids.max", "40\n");
  EXPECT_EQ(read().threads, 40);
  write("proc/self/cgroup", "8:pids:/c\n0::/\n");
  write("sys/fs/cgroup/pids/c/pids.max", "30\n");
  EXPECT_EQ(read().threads, 30);
}

}  // namespace
}  // namespace cputrain::system
