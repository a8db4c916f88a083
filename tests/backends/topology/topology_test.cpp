#include "backends/topology/topology.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "backends/topology/cpu_info.h"

namespace cputrain::topology {
namespace {

TEST(Topology, DescribesThisMachine) {
  const placement::Machine machine = read_machine();
  EXPECT_FALSE(machine.host.empty());
  EXPECT_FALSE(machine.cpu_model.empty());
  EXPECT_FALSE(machine.cpu_id.vendor.empty());
  EXPECT_GE(machine.sockets, 1);
  EXPECT_GE(machine.numa_nodes, 1);
  EXPECT_GE(machine.cores, 1);
  EXPECT_GE(machine.hardware_threads, machine.cores);
  EXPECT_GT(machine.memory_gb, 0.1);
  EXPECT_EQ(machine.core_of_cpu.size(), machine.allowed_cpus.size());
  EXPECT_GE(machine.allowed_cores, 1);
  EXPECT_LE(machine.allowed_cores, machine.cores);
}

/// The mask is the kernel's, so that taskset, mpirun's binding and Slurm's cpusets count.
TEST(Topology, FollowsTheMaskOfTheProcess) {
  const placement::Machine before = read_machine();
  const int last = before.allowed_cpus.back();
  placement::Machine narrowed;
  std::thread([&] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(last, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    narrowed = read_machine();
  }).join();
  EXPECT_EQ(narrowed.allowed_cpus, std::vector<int>{last});
  EXPECT_EQ(narrowed.allowed_cores, 1);
  EXPECT_EQ(narrowed.cores, before.cores);
}

/// Run by ctest with OMP_PROC_BIND=close and OMP_PLACES=cores, which make libgomp bind this thread
/// to one core when it is loaded.
TEST(Topology, LooksThroughTheBindingOfOpenMp) {
  if (std::getenv("OMP_PROC_BIND") == nullptr) GTEST_SKIP() << "OMP_PROC_BIND is not set";
  cpu_set_t given, bound;
  ASSERT_EQ(sched_getaffinity(0, sizeof given, &given), 0);
  if (!dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL)) GTEST_SKIP() << "libgomp is not here";
  ASSERT_EQ(sched_getaffinity(0, sizeof bound, &bound), 0);
  const placement::Machine machine = read_machine();
  EXPECT_EQ(machine.allowed_cpus.size(), static_cast<std::size_t>(CPU_COUNT(&given)));
  EXPECT_EQ(CPU_COUNT(&bound) < CPU_COUNT(&given), machine.allowed_cores > 1);
  EXPECT_EQ(machine.openmp_binds, "OMP_PROC_BIND,OMP_PLACES");
}

TEST(InstructionSet, InWords) {
  EXPECT_EQ(instruction_set("flags\t\t: fpu sse4_2 avx avx2 fma\n"), "AVX2 (FMA)");
  EXPECT_EQ(instruction_set("flags : avx avx2 avx512f\n"), "AVX-512");
  EXPECT_EQ(instruction_set("flags : avx2 avx512f avx512_vnni avx512_bf16\n"),
            "AVX-512 (bf16, VNNI)");
  EXPECT_EQ(instruction_set("flags : avx512f amx_tile amx_bf16 amx_int8\n"),
            "AVX-512, AMX (bf16, int8)");
  EXPECT_EQ(instruction_set("vmx flags : avx2\nflags : sse4_2\n"), "SSE4.2");
  EXPECT_EQ(instruction_set("Features : fp asimd sve\n"), "SVE");
  EXPECT_EQ(instruction_set(""), "");
}

TEST(CpuId, OfX86IsWhatCpuidSays) {
  const placement::CpuId id = cpu_id(
      "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\n"
      "model name\t: AMD EPYC\nstepping\t: 1\nflags\t\t: fpu amx_bf16 avx2 fma made_up\n"
      "processor\t: 1\nvendor_id\t: another\ncpu family\t: 5\n");
  EXPECT_EQ(id, (placement::CpuId{.vendor = "AuthenticAMD",
                                  .family = 26,
                                  .model = 2,
                                  .stepping = 1,
                                  .instructions = {"fma", "avx2", "amx_bf16"}}));
}

TEST(CpuId, OfArmIsWhatItHasInstead) {
  const placement::CpuId id = cpu_id(
      "processor\t: 0\nFeatures\t: fp asimd bf16 sve\nCPU implementer\t: 0x41\n"
      "CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0xd4c\nCPU revision\t: 2\n");
  EXPECT_EQ(id, (placement::CpuId{.vendor = "0x41",
                                  .part = 0xd4c,
                                  .variant = 1,
                                  .revision = 2,
                                  .instructions = {"asimd", "bf16", "sve"}}));
}

TEST(CpuId, IsNeverGuessed) {
  EXPECT_FALSE(cpu_id("").known());
  EXPECT_FALSE(cpu_id("cpu family : unknown\nmodel : 8x\nstepping : -1\nCPU part : 0x\n").known());
}

TEST(CpuModel, IsTheFirstNamed) {
  EXPECT_EQ(cpu_model("processor : 0\nmodel : 85\nmodel name\t: Some CPU @ 2.80GHz\n"),
            "Some CPU @ 2.80GHz");
  EXPECT_EQ(cpu_model("processor : 0\n"), "unknown");
}

TEST(TotalMemory, IsReadFromMeminfo) {
  EXPECT_EQ(total_memory("MemTotal:       24684084 kB\nMemFree:        24307148 kB\n"),
            24684084.0 * 1024);
  EXPECT_EQ(total_memory("MemTotal: much\n"), 0);
  EXPECT_EQ(total_memory(""), 0);
}

}  // namespace
}  // namespace cputrain::topology
