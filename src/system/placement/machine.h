#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace cputrain {
class JsonMembers;
}

namespace cputrain::placement {

/// Which processor it is, beside its name: virtual machines often hide that ("AMD EPYC"). What is
/// not recorded is empty, and nothing is guessed.
struct CpuId {
  std::string vendor{};  ///< "GenuineIntel"; of Arm the implementer's number, "0x41"
  /// By cpuid, which x86 alone has. Family and model include the extended ones.
  std::optional<int> family{}, model{}, stepping{};
  std::optional<int> part{}, variant{}, revision{};  ///< of Arm, in its register MIDR
  /// Those that kernels differ by, as the system calls them: "avx2", "avx512_bf16". Programs may
  /// use them here: a virtual machine may have fewer than its processor.
  std::vector<std::string> instructions{};

  // Recorded and shown, and no part of its kind: a container may see some of them, and microcode
  // changes with the system.
  std::optional<int> cores{};         ///< that this system sees
  std::vector<std::string> caches{};  ///< "L2 1024 KiB x 2", one line a level
  std::string microcode{};            ///< "0xa101148"
  std::string taken_from{};  ///< where no program asked it: "results/epyc-zen3-2-cores/README.md"

  /// What figures are of: those of other kinds are never mixed.
  CpuId kind() const {
    return {vendor, family, model, stepping, part, variant, revision, instructions};
  }
  bool known() const { return kind() != CpuId{}; }
  bool operator==(const CpuId&) const = default;
};

/// The member "cpu_id" of the object that says where something ran: read where it is there, written
/// where anything is known.
void describe_cpu_id(JsonMembers&, CpuId&);
nlohmann::ordered_json to_json(const CpuId&);

/// "AuthenticAMD, family 25, model 17, stepping 1", "0x41, part 3404, variant 1, revision 1"; "not
/// recorded" where none of it is known. `whole`: with instructions, caches and microcode, too.
std::string text_of(const CpuId&, bool whole = false);

/// "AMD EPYC", as virtual machines say it, is many processors: "AMD EPYC (family 25, model 17)".
/// A name with a number in it stays as it is.
std::string processor_name(const std::string& name, const CpuId&);

/// One machine as a rank sees it. Hardware threads are numbered as the operating system does; a
/// core has one or two of them, which share its vector units, so cores are what arithmetic is
/// planned by. A NUMA node is a part of the machine with memory of its own.
struct Machine {
  std::string host;    ///< its name, or its container's
  std::string kernel;  ///< the boot id of the running system; empty where there is none
  std::string cpu_model;
  CpuId cpu_id;
  std::string instruction_set;  ///< "AVX-512 (bf16, VNNI)", "AVX2", ...
  int sockets = 0, numa_nodes = 0;
  int cores = 0,
      hardware_threads = 0;       ///< the whole machine's, or of the container it seems to be
  double memory_gb = 0;           ///< 1e9 bytes; less where a control group allows less
  std::vector<int> allowed_cpus;  ///< hardware threads this process may run on
  std::vector<int> core_of_cpu;   ///< the core of each of them, as a number
  std::vector<int> numa_of_cpu;   ///< the NUMA node of each of them, as a number
  int allowed_cores = 0;          ///< physical cores among them
  double cpu_quota = 0;         ///< CPUs' worth of time that the control group allows; 0: no limit
  std::uint64_t cpu_group = 0;  ///< that group, by the kernel's number; 0: none
  int team_limit = 0;           ///< threads that OpenMP lets compute together; 0: no limit
  std::string team_limited_by;  ///< the variable that sets it; "OpenMP" without one
  std::string openmp_binds;  ///< variables by which OpenMP binds threads; empty where it does not
};

}  // namespace cputrain::placement
