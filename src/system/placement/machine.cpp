#include "system/placement/machine.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/json_fields.h"
#include "core/text.h"

namespace cputrain::placement {
namespace {

constexpr int kMostNumber = 1 << 24;
constexpr std::size_t kMostInstructions = 1000;

void fields_of(JsonMembers& f, CpuId& id) {
  f.may("vendor", id.vendor);
  f.may("family", id.family, 0, kMostNumber);
  f.may("model", id.model, 0, kMostNumber);
  f.may("stepping", id.stepping, 0, kMostNumber);
  f.rare("part", id.part, 0, kMostNumber);
  f.rare("variant", id.variant, 0, kMostNumber);
  f.rare("revision", id.revision, 0, kMostNumber);
  f.may("instructions", id.instructions, kMostInstructions);
}

}  // namespace

void describe_cpu_id(JsonMembers& f, CpuId& id) {
  if (f.file() || id.known()) f.may_object("cpu_id", id, fields_of);
}

nlohmann::ordered_json to_json(const CpuId& id) { return json_of(id, fields_of); }

std::string text_of(const CpuId& id) {
  std::vector<std::string> parts;
  if (!id.vendor.empty()) parts.push_back(id.vendor);
  for (const auto& [name, number] :
       std::array{std::pair("family", id.family), std::pair("model", id.model),
                  std::pair("stepping", id.stepping), std::pair("part", id.part),
                  std::pair("variant", id.variant), std::pair("revision", id.revision)}) {
    if (number) parts.push_back(fmt::format("{} {}", name, *number));
  }
  return parts.empty() ? "not recorded" : join(parts, ", ");
}

}  // namespace cputrain::placement
