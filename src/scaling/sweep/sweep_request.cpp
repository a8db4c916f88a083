#include "scaling/sweep/sweep_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "scaling/cells/axes.h"
#include "system/bounded_file.h"
#include "training/request/flag_grammars.h"
#include "training/request/training_rows.h"

namespace cputrain::sweep {
namespace {

bool counts_gpus(const cells::SweepGrid& grid, const cells::Cell& cell) {
  return training::is_device(cell.backend) && !grid.gpus.empty();
}

template <class T>
T value_from(const std::string& text) {
  if constexpr (std::is_same_v<T, std::string>) {
    return text;
  } else {
    const auto value = number_in<T>(text);
    if (!value || *value < 1) throw std::runtime_error(printable(text) + " is no count");
    return *value;
  }
}

template <class T>
void read_list(const nlohmann::json& flags, const char* name, std::vector<T>& list) {
  list.clear();
  if (!flags.contains(name)) return;
  for (const std::string& part : split(flags.at(name).get<std::string>(), ',')) {
    list.push_back(value_from<T>(part));
  }
}

template <class T>
void add_new(std::vector<T>& list, const std::vector<T>& added) {
  for (const T& value : added) {
    if (std::ranges::find(list, value) == list.end()) list.push_back(value);
  }
}

}  // namespace

void check_limits(const std::vector<cells::Cell>& cells, const cells::SweepGrid& grid) {
  for (const cells::Cell& cell : cells) {
    if (cell.batch <= cells::kMostBatch) continue;
    fail(ExitCode::usage,
         "--batch-per-rank {} with --{} {}: batches of up to {} over all ranks are allowed, and {} "
         "ranks make {}",
         list_text(grid.batches_per_rank), counts_gpus(grid, cell) ? "gpus" : "np",
         list_text(grid.counts_of(cell.backend)), cells::kMostBatch, cell.ranks, cell.batch);
  }
}

void check_size(const cells::SweepGrid& grid) {
  const double count = cells::count_cells(grid);
  if (count <= static_cast<double>(cells::kMostCells)) return;
  std::vector<std::string> flags;
  cells::for_each_list(grid, [&](const char* name, const auto& list) {
    if (list.size() > 1) flags.push_back(fmt::format("--{} {}", name, list_text(list)));
  });
  fail(ExitCode::usage, "{}: {:.0f} cells, and at most {} are allowed; name fewer values",
       join(flags, " "), count, cells::kMostCells);
}

void set_value(training::TrainingFlags& flags, std::string_view flag, const std::string& value) {
  if (value == cells::kOwnDefault) return;
  training::training_row(flag).set(flags, value);
}

Kept kept_in(const std::filesystem::path& folder) {
  constexpr std::uintmax_t kMostBytes = 64 << 20;
  const auto file = folder / kKeptName;
  if (!system::is_present(file)) return {};
  try {
    const nlohmann::json json = parse_strict_json(system::read_bounded(file, kMostBytes));
    Kept kept;
    json.at("order").get_to(kept.order);
    for (const auto& [batch, images] : json.at("images").items()) {
      kept.images[value_from<std::size_t>(batch)] = value_from<std::size_t>(images.dump());
    }
    return kept;
  } catch (const std::exception& error) {
    fail(ExitCode::data,
         "{}: {} (it says which cells were there before --extend); name another --out",
         file.string(), error.what());
  }
}

nlohmann::ordered_json to_json(const Kept& kept) {
  nlohmann::ordered_json images = nlohmann::ordered_json::object();
  for (const auto& [batch, count] : kept.images) images[std::to_string(batch)] = count;
  return {{"order", kept.order}, {"images", std::move(images)}};
}

void put_in_order(std::vector<cells::Cell>& cells, const Kept& kept) {
  std::map<std::string, std::size_t> places;
  for (const std::string& name : kept.order) places.emplace(name, places.size());
  std::ranges::stable_sort(cells, {}, [&](const cells::Cell& cell) {
    const auto found = places.find(cells::cell_name(cell));
    return found == places.end() ? places.size() : found->second;
  });
}

cells::SweepGrid grid_from(const nlohmann::json& flags, const std::string& where) {
  cells::SweepGrid grid;
  for (const cells::ListedFlag& flag : cells::kListedFlags) {
    if (flags.contains(flag.name)) grid.listed[std::string(flag.name)];
  }
  try {
    cells::for_each_list(grid, [&](const char* name, auto& list) { read_list(flags, name, list); });
  } catch (const std::exception& error) {
    fail(ExitCode::data, "{}: {} (it says which cells the folder has); name another --out", where,
         error.what());
  }
  return grid;
}

cells::SweepGrid united(cells::SweepGrid there, const cells::SweepGrid& added) {
  // Columns of devices that --np counted stay, whatever --gpus adds.
  const bool by_cpus =
      there.gpus.empty() && std::ranges::any_of(there.backends, training::is_device);
  if (by_cpus && !added.gpus.empty()) there.gpus = there.cpus;
  add_new(there.gpus, added.gpus);
  add_new(there.cpus, added.cpus);
  add_new(there.threads, added.threads);
  add_new(there.batches, added.batches);
  add_new(there.batches_per_rank, added.batches_per_rank);
  add_new(there.backends, added.backends);
  for (const auto& [flag, values] : added.listed) {
    std::vector<std::string>& list = there.listed[flag];
    if (list.empty()) list.emplace_back(cells::listed_flag(flag)->usual);
    add_new(list, values);
  }
  return there;
}

bool is_of_grid(const std::string& flag) {
  cells::SweepGrid grid;
  bool found = cells::listed_flag(flag) != nullptr;
  cells::for_each_list(grid, [&](const char* name, const auto&) { found |= flag == name; });
  return found;
}

}  // namespace cputrain::sweep
