#include "scaling/cells/axes.h"

#include <algorithm>
#include <set>

#include "core/text.h"
#include "scaling/cells/series_identity.h"

namespace cputrain::cells {

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

}  // namespace cputrain::cells
