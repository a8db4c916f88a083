#include "scaling/cells/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/precision.h"
#include "core/text.h"
#include "training/request/flag_grammars.h"

namespace cputrain::cells {
namespace {

/// Texts that are too long for names, which have their numbers, from 1.
struct Numbered {
  const char *word, *head;
  std::string SeriesIdentity::*text;

  std::vector<std::string> texts(const std::vector<SeriesIdentity>& all) const {
    std::vector<std::string> found;
    for (const SeriesIdentity& one : all) {
      if (std::ranges::find(found, one.*text) == found.end()) found.push_back(one.*text);
    }
    return found;
  }

  /// Whether another series of this backend on a machine of this name has another text.
  bool matters(const SeriesIdentity& own, const std::vector<SeriesIdentity>& all) const {
    return std::ranges::any_of(all, [&](const SeriesIdentity& one) {
      return one.backend == own.backend && one.machine == own.machine &&
             one.simulated == own.simulated && one.*text != own.*text;
    });
  }
};
constexpr std::array<Numbered, 2> kNumbered{{{"processor", "Processor", &SeriesIdentity::processor},
                                             {"build", "Build", &SeriesIdentity::build}}};

/// The option's value, the usual one of a listed flag; empty where nothing is said.
std::string value_in(const FlagTexts& options, const std::string& name) {
  const auto found = options.find(name);
  if (found != options.end()) return found->second;
  const ListedFlag* flag = listed_flag(name);
  return flag ? std::string(flag->usual) : "";
}

/// Backend, a device's precision, and machine, model, epoch and data where others differ in them.
std::string plain_name(const SeriesIdentity& own, const std::vector<SeriesIdentity>& all) {
  std::set<std::pair<std::string, bool>> machines;
  std::set<std::pair<std::string, int>> models;
  std::set<std::size_t> epochs;
  std::set<std::string> data, devices, kernels;
  for (const SeriesIdentity& one : all) {
    if (one.backend == own.backend) {
      machines.emplace(one.machine, one.simulated);
      devices.insert(one.device);
      if (!one.simulated) kernels.insert(one.kernels);
    }
    models.emplace(one.model, one.image_size);
    epochs.insert(one.images);
    data.insert(one.data);
  }
  std::string name = own.backend;
  const std::string precision = value_in(own.options, "precision");
  if (training::is_device(own.backend) && precision != kOwnDefault) {
    name += " " + training::precision_in_figures(own.backend, precision);
  }
  if (devices.size() > 1 && !own.device.empty()) name += ", " + own.device;
  if (machines.size() > 1) name += ", " + own.machine + (own.simulated ? ", simulated" : "");
  if (kernels.size() > 1 && !own.simulated) name += ", kernels " + own.kernels;
  if (models.size() > 1)
    name += fmt::format(", {} at {}x{}", own.model, own.image_size, own.image_size);
  if (epochs.size() > 1) name += fmt::format(", {} images", own.images);
  if (data.size() > 1) name += ", data " + (own.data.empty() ? "not said" : own.data);
  return name;
}

/// One that is not recorded is that of its folder alone.
std::string or_not_recorded(const std::string& text, const std::string& folder) {
  if (!text.empty()) return text;
  return folder.empty() ? "not recorded" : "not recorded in " + folder;
}

}  // namespace

std::string machine_text(const CellMachine& m, const placement::CpuId& id) {
  if (!m.platform.empty()) return m.platform;
  const std::string name = m.cpu.empty() ? m.host : placement::processor_name(m.cpu, id);
  std::vector<std::string> parts;
  for (const std::string& part : {m.name, name}) {
    if (!part.empty()) parts.push_back(part);
  }
  if (parts.empty()) return "unknown machine";
  if (m.cores > 0) parts.push_back(counted(m.cores, "core"));
  return join(parts, ", ");
}

const ListedFlag* listed_flag(std::string_view name) {
  const auto found = std::ranges::find(kListedFlags, name, &ListedFlag::name);
  return found == kListedFlags.end() ? nullptr : &*found;
}

std::string value_of(const ListedFlag& flag, const CellTable& table, const Cell& cell) {
  for (const FlagTexts* texts : {&cell.axes, &table.options}) {
    const auto found = texts->find(std::string(flag.name));
    if (found != texts->end()) return found->second;
  }
  return std::string(flag.usual);
}

FlagTexts without_usual(FlagTexts texts) {
  std::erase_if(texts, [](const auto& entry) {
    const ListedFlag* flag = listed_flag(entry.first);
    return flag && entry.second == flag->usual;
  });
  return texts;
}

Place place_of(const Cell& c) {
  Place place{c.backend, std::to_string(c.ranks), std::to_string(c.threads),
              std::to_string(c.batch),
              c.batch_per_rank ? std::to_string(*c.batch_per_rank) : std::string()};
  for (const auto& [flag, value] : without_usual(c.axes)) {
    place.push_back(flag);
    place.push_back(value);
  }
  return place;
}

std::vector<ListedFlag> varied_flags(const CellTable& table) {
  std::vector<ListedFlag> varied;
  for (const ListedFlag& flag : kListedFlags) {
    std::set<std::string> values;
    for (const Cell& cell : table.cells) values.insert(value_of(flag, table, cell));
    if (values.size() > 1) varied.push_back(flag);
  }
  return varied;
}

std::string axes_text(const std::vector<ListedFlag>& flags, const CellTable& table,
                      const Cell& cell) {
  std::vector<std::string> texts;
  for (const ListedFlag& flag : flags) {
    texts.push_back(option_text(std::string(flag.name), value_of(flag, table, cell)));
  }
  return join(texts, " ");
}

SeriesIdentity identity_of(const CellTable& t, const Cell& c, const std::string& folder) {
  FlagTexts options = t.options;
  for (const auto& [flag, value] : c.axes) options[flag] = value;
  // Named by its own word, which stands for TF32 on a device.
  const auto precision = options.find("precision");
  if (training::is_device(c.backend) && precision != options.end() &&
      precision->second == kOwnDefault) {
    precision->second = word_of(Precision::f32);
  }
  const bool simulated = is_forecast(c.status) || !t.machine.platform.empty();
  const placement::CpuId& id = c.origin.cpu_id.known() ? c.origin.cpu_id : t.machine.cpu_id;
  const std::optional<int>& version = c.origin.kernels_version;
  const auto recorded = [&](bool known, const std::string& text) {
    return simulated ? "" : or_not_recorded(known ? text : "", folder);
  };
  return {.backend = c.backend,
          .machine = machine_text(t.machine, id),
          .processor = recorded(id.known(), text_of(id.kind(), true)),
          .kernels = recorded(version.has_value(), std::to_string(version.value_or(0))),
          .device = c.device,
          .simulated = simulated,
          .model = t.model,
          .image_size = t.image_size,
          .images = t.images_per_epoch,
          .data = t.data,
          .build = t.machine.build,
          .options = without_usual(std::move(options))};
}

bool differ_in_axes_alone(SeriesIdentity a, SeriesIdentity b) {
  for (SeriesIdentity* one : {&a, &b}) {
    std::erase_if(one->options, [](const auto& entry) { return listed_flag(entry.first); });
  }
  return a == b;
}

std::string name_of(const SeriesIdentity& own, const std::vector<SeriesIdentity>& all) {
  std::string name = plain_name(own, all);
  // Options can be long (a simulation's costs): they are said where the rest tells nothing apart.
  const auto alike = std::ranges::count_if(
      all, [&](const SeriesIdentity& one) { return plain_name(one, all) == name; });
  const std::string apart = alike > 1 ? options_apart(own, all) : "";
  if (!apart.empty()) name += ", " + apart;
  for (const Numbered& one : kNumbered) {
    if (!one.matters(own, all)) continue;
    const auto texts = one.texts(all);
    name += fmt::format(", {} {}", one.word,
                        std::ranges::find(texts, own.*one.text) - texts.begin() + 1);
  }
  return name;
}

std::string options_apart(const SeriesIdentity& own, const std::vector<SeriesIdentity>& all) {
  std::set<std::string> names;
  for (const SeriesIdentity& one : all) {
    for (const auto& [name, value] : one.options) names.insert(name);
  }
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    const std::string value = value_in(own.options, name);
    const bool common = std::ranges::all_of(
        all, [&](const SeriesIdentity& one) { return value_in(one.options, name) == value; });
    if (!common && !value.empty() && value != kOwnDefault)
      parts.push_back(option_text(name, value));
  }
  return join(parts, ", ");
}

std::vector<std::string> identity_remarks(const std::vector<SeriesIdentity>& all) {
  std::vector<std::string> remarks;
  for (const Numbered& one : kNumbered) {
    const auto matters = [&](const SeriesIdentity& own) { return one.matters(own, all); };
    if (std::ranges::none_of(all, matters)) continue;
    for (int number = 0; const std::string& text : one.texts(all)) {
      remarks.push_back(
          fmt::format("{} {}: {}.", one.head, ++number, text.empty() ? "not said" : text));
    }
  }
  return remarks;
}

std::string option_text(const std::string& name, const std::string& value) {
  return value == "true" ? "--" + name : fmt::format("--{} {}", name, value);
}

}  // namespace cputrain::cells
