#include "system/placement/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/json_fields.h"
#include "core/text.h"

namespace cputrain::placement {
namespace {

constexpr int kMostNumber = 1 << 24;
constexpr std::size_t kMostTexts = 1000;

void fields_of(JsonMembers& f, CpuId& id) {
  f.may("vendor", id.vendor);
  f.may("family", id.family, 0, kMostNumber);
  if (f.file()) f.may("model", id.model, 0, kMostNumber);  // as older files have it
  f.may("cpu_model", id.model, 0, kMostNumber);
  f.may("stepping", id.stepping, 0, kMostNumber);
  f.rare("part", id.part, 0, kMostNumber);
  f.rare("variant", id.variant, 0, kMostNumber);
  f.rare("revision", id.revision, 0, kMostNumber);
  f.may("instructions", id.instructions, kMostTexts);
  f.rare("cores", id.cores, 0, kMostNumber);
  f.rare("caches", id.caches, kMostTexts);
  f.rare("microcode", id.microcode);
  f.rare("taken_from", id.taken_from);
}

}  // namespace

void describe_cpu_id(JsonMembers& f, CpuId& id) {
  if (f.file() || id.known()) f.may_object("cpu_id", id, fields_of);
}

nlohmann::ordered_json to_json(const CpuId& id) { return json_of(id, fields_of); }

std::string text_of(const CpuId& id, bool whole) {
  std::vector<std::string> parts;
  if (!id.vendor.empty()) parts.push_back(id.vendor);
  for (const auto& [name, number] :
       std::array{std::pair("family", id.family), std::pair("model", id.model),
                  std::pair("stepping", id.stepping), std::pair("part", id.part),
                  std::pair("variant", id.variant), std::pair("revision", id.revision)}) {
    if (number) parts.push_back(fmt::format("{} {}", name, *number));
  }
  std::string text = parts.empty() ? "not recorded" : join(parts, ", ");
  if (!whole) return text;
  for (const auto& list : {id.instructions, id.caches}) {
    if (!list.empty()) text += "; " + join(list, ", ");
  }
  if (!id.microcode.empty()) text += "; microcode " + id.microcode;
  return id.taken_from.empty() ? text : text + "; taken from " + id.taken_from;
}

std::string processor_name(const std::string& name, const CpuId& id) {
  const bool hidden = std::ranges::none_of(name, [](char c) { return c >= '0' && c <= '9'; });
  if (!hidden || !id.family || !id.model) return name;
  return fmt::format("{} (family {}, model {})", name, *id.family, *id.model);
}

}  // namespace cputrain::placement
