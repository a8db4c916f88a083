#pragma once

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

  bool known() const { return *this != CpuId{}; }
  bool operator==(const CpuId&) const = default;
};

/// The member "cpu_id" of the object that says where something ran: read where it is there, written
/// where anything is known.
void describe_cpu_id(JsonMembers&, CpuId&);
nlohmann::ordered_json to_json(const CpuId&);

/// "AuthenticAMD, family 25, model 17, stepping 1", "0x41, part 3404, variant 1, revision 1"; "not
/// recorded" where none of it is known.
std::string text_of(const CpuId&);

}  // namespace cputrain::placement
