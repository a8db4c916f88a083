#include "system/limits/control_group.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace cputrain::system {
namespace {

/// Paths below sys/fs/cgroup, and what is in them.
using Files = std::vector<std::pair<std::string, std::string>>;

/// A file system with control groups in it: `own` says which of them are the process's.
class ControlGroups {
 public:
  ControlGroups(const std::string& own, const Files& files) {
    write("proc/self/cgroup", own);
    for (const auto& [path, text] : files) write("sys/fs/cgroup/" + path, text + "\n");
  }
  GroupLimits read() const { return read_group_limits(folder_.path()); }
  /// The kernel's number of a group.
  std::uint64_t number_of(const std::string& group) const {
    struct stat about {};
    return ::stat((folder_.path() / "sys/fs/cgroup" / group).c_str(), &about) == 0 ? about.st_ino
                                                                                   : 0;
  }

 private:
  void write(const std::string& path, const std::string& text) const {
    const auto file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const testing::TemporaryFolder folder_;
};

constexpr const char* kNone = "9223372036854771712";  // what version 1 says of no limit

struct Case {
  const char* what;
  std::string own;
  GroupLimits limits;
  Files files;
};

const std::vector<Case> kCases{
    {"none are no limit", "", {}, {}},
    {"a group without files", "0::/\n", {}, {}},
    {"version 2",
     "0::/\n",
     {.cpus = 2.5, .memory_bytes = 1e6, .memory_left = 1e6},
     {{"cpu.max", "250000 100000"}, {"memory.max", "1000000"}}},
    {"version 2 without limit",
     "0::/user/job\n",
     {},
     {{"user/job/cpu.max", "max 100000"}, {"user/job/memory.max", "max"}}},
    {"version 1",
     "5:memory:/m\n4:cpu,cpuacct:/job\n1:name=systemd:/x\n0::/\n",
     {.cpus = 3, .memory_bytes = 4096, .memory_left = 4096},
     {{"cpu/job/cpu.cfs_quota_us", "150000"},
      {"cpu/job/cpu.cfs_period_us", "50000"},
      {"memory/m/memory.limit_in_bytes", "4096"},
      {"memory/memory.limit_in_bytes", kNone}}},
    {"version 1 without limit",
     "5:memory:/\n4:cpu:/\n",
     {},
     {{"cpu/cpu.cfs_quota_us", "-1"},
      {"cpu/cpu.cfs_period_us", "100000"},
      {"memory/memory.limit_in_bytes", kNone}}},
    {"Docker shows the host's path of the group, but mounts the group itself",
     "4:cpu:/docker/0123\n",
     {.cpus = 2},
     {{"cpu/cpu.cfs_quota_us", "200000"}, {"cpu/cpu.cfs_period_us", "100000"}}},
    {"of the level with the least, and not files that the system would drop, at each level",
     "0::/job/step/task\n",
     {.memory_bytes = 10000, .memory_left = 4000},
     {{"job/step/task/memory.max", "max"},
      {"job/step/task/memory.current", "50"},
      {"job/step/memory.max", "10000"},
      {"job/step/memory.current", "3000"},
      {"job/memory.max", "12000"},
      {"job/memory.current", "9000"},
      {"job/memory.stat", "anon 8000\ninactive_file 1000\nactive_file 50"}}},
    {"memory left in version 1",
     "3:memory:/slurm/job_7/step_0\n",
     {.memory_bytes = 8000, .memory_left = 3500},
     {{"memory/slurm/job_7/step_0/memory.limit_in_bytes", kNone},
      {"memory/slurm/job_7/step_0/memory.usage_in_bytes", "500"},
      {"memory/slurm/job_7/memory.limit_in_bytes", "8000"},
      {"memory/slurm/job_7/memory.usage_in_bytes", "7000"},
      {"memory/slurm/job_7/memory.stat", "inactive_file 1\ntotal_inactive_file 2500"}}},
    {"never less than nothing",
     "0::/\n",
     {.memory_bytes = 1000, .memory_left = 0},
     {{"memory.max", "1000"}, {"memory.current", "1500"}}},
    {"the limit where nothing says what is used",
     "0::/\n",
     {.memory_bytes = 1000, .memory_left = 1000},
     {{"memory.max", "1000"}}},
    {"above it nothing is ended, but everything crawls",
     "0::/job\n",
     {.memory_bytes = 7000, .memory_left = 6000},
     {{"job/memory.max", "9000"}, {"job/memory.high", "7000"}, {"job/memory.current", "1000"}}},
    {"a group outside of ours, in another namespace",
     "0::/../other/task\n",
     {.memory_bytes = 6000, .memory_left = 6000},
     {{"memory.max", "6000"}, {"../../memory.max", "1"}}},
    {"a container that shows the host's path and has groups of its own",
     "0::/docker/0123/batch/job\n",
     {.memory_bytes = 5000, .memory_left = 5000},
     {{"batch/job/memory.max", "max"}, {"batch/memory.max", "5000"}, {"memory.max", "8000"}}},
    {"threads", "0::/a/b\n", {.threads = 40}, {{"a/b/pids.max", "max"}, {"a/pids.max", "40"}}},
    {"threads in version 1", "8:pids:/c\n0::/\n", {.threads = 30}, {{"pids/c/pids.max", "30"}}}};

void expect_limits(const GroupLimits& found, const GroupLimits& expected) {
  EXPECT_EQ(found.cpus, expected.cpus);
  EXPECT_EQ(found.memory_bytes, expected.memory_bytes);
  EXPECT_EQ(found.threads, expected.threads);
  EXPECT_EQ(found.memory_left, expected.memory_left);
}

TEST(ControlGroup, LimitsAreThoseOfEveryForm) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    expect_limits(ControlGroups(c.own, c.files).read(), c.limits);
  }
}

TEST(ControlGroup, TheTightestGroupCounts) {
  const ControlGroups groups("0::/user/job\n", {{"user/job/cpu.max", "400000 100000"},
                                                {"user/cpu.max", "300000 100000"},
                                                {"user/job/memory.max", "5000"},
                                                {"user/memory.max", "6000"}});
  expect_limits(groups.read(), {.cpus = 3, .memory_bytes = 5000, .memory_left = 5000});
  EXPECT_EQ(groups.read().cpu_group, groups.number_of("user"));
  EXPECT_EQ(groups.read().memory_group, groups.number_of("user/job"));
  const GroupLimits none = ControlGroups("", {}).read();
  EXPECT_EQ(none.cpu_group + none.memory_group, 0u);
}

TEST(ControlGroup, WhatIsNoNumberIsNoLimit) {
  for (const char* text : {"", "max", "-5", "garbage", "nan", "1e999", "99999999999999999999"}) {
    SCOPED_TRACE(text);
    expect_limits(
        ControlGroups("0::/\n", {{"memory.max", text}, {"pids.max", text}, {"cpu.max", text}})
            .read(),
        {});
  }
}

}  // namespace
}  // namespace cputrain::system
