#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/strict_json.h"
#include "core/text.h"
#include "scaling/cells/axes.h"
#include "scaling/cells/cell_reader.h"
#include "scaling/cells/cells.h"
#include "scaling/cells/plan.h"
#include "system/bounded_file.h"

namespace cputrain::cells {
namespace {

constexpr std::int64_t kMostCpus = 1 << 24;
constexpr std::int64_t kMostCount = 1'000'000'000'000;
constexpr std::uintmax_t kMostBytes = 256 << 20;

CellStatus status_of(const CellReader& reader) {
  const std::string text = reader.text("status");
  for (const CellStatus status : {CellStatus::measured, CellStatus::scaled, CellStatus::simulated,
                                  CellStatus::predicted, CellStatus::absent}) {
    if (text == status_name(status)) return status;
  }
  reader.wrong("status must be one of measured, scaled, simulated, predicted, n/a");
}

/// Names become columns, files and HTML: a short word.
std::string backend_of(const CellReader& reader) {
  const std::string name = reader.text("backend");
  const bool word = std::ranges::all_of(name, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
  if (name.empty() || name.size() > 32 || !word) {
    reader.wrong("backend must be a word of small letters and digits");
  }
  return name;
}

std::optional<CellSpread> range_of(const CellReader& reader) {
  const std::vector<double> ends = reader.reals("spread", kLeastCellSeconds, kMostCellSeconds);
  if (!reader.knows("spread")) return std::nullopt;
  if (ends.size() != 2 || ends[0] > ends[1]) reader.wrong("spread must be [least, most]");
  return CellSpread{ends[0], ends[1]};
}

std::optional<Budget> budget_of(const CellReader& cell) {
  const nlohmann::json* object = cell.object("budget");
  if (!object) return std::nullopt;
  const CellReader reader(*object, cell.where() + ", budget");
  Budget budget;
  for (const BudgetPart& part : kBudgetParts) {
    budget.*part.seconds = reader.real(part.name, -kMostCellSeconds, kMostCellSeconds).value_or(0);
  }
  return budget;
}

CellLimits limits_of(const CellReader& cell) {
  const nlohmann::json* object = cell.object("limits");
  if (!object) return {};
  const CellReader reader(*object, cell.where() + ", limits");
  return {reader.text("what"), reader.text("why")};
}

/// Folders inside that of the table, and nowhere else.
std::vector<std::string> runs_of(const CellReader& reader) {
  std::vector<std::string> runs = reader.texts("runs");
  for (const std::string& run : runs) {
    const std::filesystem::path path(run);
    if (path.is_absolute() || run.empty() || std::ranges::find(path, "..") != path.end()) {
      reader.wrong(fmt::format("runs: {} is no folder inside that of the table", printable(run)));
    }
  }
  return runs;
}

/// Figures that contradict each other.
void check(const CellReader& reader, const Cell& cell) {
  const bool absent = cell.status == CellStatus::absent;
  if (absent == cell.seconds_per_epoch.has_value()) {
    reader.wrong(absent ? "seconds_per_epoch must be null where status is n/a"
                        : "seconds_per_epoch must be a number where status is not n/a");
  }
  if (!absent && cell.spread) {
    const double slack = 1e-9 * *cell.seconds_per_epoch;
    if (*cell.seconds_per_epoch < cell.spread->min - slack ||
        *cell.seconds_per_epoch > cell.spread->max + slack) {
      reader.wrong("seconds_per_epoch must lie within its spread");
    }
  }
  if (std::int64_t{cell.ranks} * cell.threads != cell.cpus) {
    reader.wrong("cpus must be ranks times threads");
  }
  if (!cell.repeats.empty() && cell.reached_target > static_cast<int>(cell.repeats.size())) {
    reader.wrong("reached_target must not be more than there are repeats");
  }
}

void read_counts(const CellReader& reader, Cell& cell) {
  const auto count = [&](const char* key, std::int64_t most) {
    if (!reader.knows(key)) reader.wrong(fmt::format("{} is missing", key));
    return *reader.whole(key, 1, most);
  };
  cell.cpus = static_cast<int>(count("cpus", kMostCpus));
  cell.batch = static_cast<std::size_t>(count("batch", kMostBatch));
  // A cell that only says its CPUs has one thread per rank.
  cell.threads = static_cast<int>(reader.whole("threads", 1, kMostCpus).value_or(1));
  const bool splits = cell.cpus % cell.threads == 0;
  cell.ranks = static_cast<int>(
      reader.whole("ranks", 1, kMostCpus).value_or(splits ? cell.cpus / cell.threads : 1));
  if (const auto each = reader.whole("batch_per_rank", 1, kMostBatch)) {
    cell.batch_per_rank = static_cast<int>(*each);
  }
}

/// A cell that does not say its GPUs has one for each rank.
void read_devices(const CellReader& reader, Cell& cell) {
  const auto gpus = reader.whole("gpus", 0, kMostCpus);
  cell.device = reader.text("device");
  if (!is_device(cell.backend)) {
    if (gpus.value_or(0) > 0 || !cell.device.empty()) {
      reader.wrong(fmt::format("backend {} computes on no GPU, and the cell has gpus or device",
                               cell.backend));
    }
    return;
  }
  cell.gpus = static_cast<int>(gpus.value_or(cell.ranks));
  if (cell.gpus < 1 || cell.gpus > cell.ranks) reader.wrong("gpus must be from 1 to ranks");
}

}  // namespace

Cell cell_from_json(const nlohmann::json& json, const std::string& where) {
  const CellReader reader(json, where);
  Cell cell;
  read_counts(reader, cell);
  cell.backend = backend_of(reader);
  read_devices(reader, cell);
  cell.axes = reader.options("axes");
  cell.status = status_of(reader);
  cell.reason = reader.text("reason");
  reader.required("seconds_per_epoch");
  reader.required("spread");
  cell.seconds_per_epoch = reader.real("seconds_per_epoch", kLeastCellSeconds, kMostCellSeconds);
  cell.spread = range_of(reader);
  cell.repeats = reader.reals("repeats", kLeastCellSeconds, kMostCellSeconds);
  cell.steps = reader.whole("steps", 0, kMostCount).value_or(0);
  cell.images_per_second = reader.real("images_per_second", 0, kMostCellRate);
  cell.limits = limits_of(reader);
  cell.budget = budget_of(reader);
  cell.gflops = reader.real("gflops", 0, kMostCellRate);
  cell.fma_gflops = reader.real("fma_gflops", 0, kMostCellRate);
  cell.triad_gbs = reader.real("triad_gbs", 0, kMostCellRate);
  cell.stolen = reader.real("stolen", 0, 1);
  cell.cpu_wait = reader.real("cpu_wait", 0, 1);
  cell.peak_rank_bytes = reader.real("peak_rank_bytes", 0, kMostCellBytes);
  cell.peak_node_bytes = reader.real("peak_node_bytes", 0, kMostCellBytes);
  cell.peak_device_bytes = reader.real("peak_device_bytes", 0, kMostCellBytes);
  cell.includes_warm_up = reader.truth("includes_warm_up");
  cell.final_loss = reader.real("final_loss", -kMostCellLoss, kMostCellLoss);
  cell.final_accuracy = reader.real("final_accuracy", 0, 1);
  cell.val_accuracy = reader.real("val_accuracy", 0, 1);
  if (const auto reached = reader.whole("reached_target", 0, 1'000'000)) {
    cell.reached_target = static_cast<int>(*reached);
  }
  cell.seconds_to_target = reader.real("seconds_to_target", 0, kMostCellSeconds);
  cell.command = reader.text("command");
  cell.runs = runs_of(reader);
  check(reader, cell);
  return cell;
}

namespace {

CellMachine machine_of(const CellReader& table) {
  const nlohmann::json* object = table.object("machine");
  if (!object) return {};
  const CellReader reader(*object, table.where() + ", machine");
  const auto count = [&](const char* key) {
    return static_cast<int>(reader.whole(key, 0, kMostCpus).value_or(0));
  };
  return {.cpu = reader.text("cpu"),
          .host = reader.text("host"),
          .os = reader.text("os"),
          .mpi = reader.text("mpi"),
          .build = reader.text("build"),
          .platform = reader.text("platform"),
          .cores = count("cores"),
          .hardware_threads = count("hardware_threads"),
          .cpus_per_core = count("cpus_per_core"),
          .memory_bytes = reader.real("memory_bytes", 0, 1e18).value_or(0)};
}

/// Two figures for one place of the table: nobody could say which holds.
void check_unique(const CellReader& reader, const std::vector<Cell>& cells) {
  std::set<Place> seen;
  for (const Cell& c : cells) {
    if (seen.insert(place_of(c)).second) continue;
    reader.wrong("two cells of " + cell_text(c));
  }
}

/// What was never measured was meant for the device of the others.
void complete_devices(std::vector<Cell>& cells) {
  std::map<std::string, std::set<std::string>> devices;
  for (const Cell& c : cells) {
    if (!c.device.empty()) devices[c.backend].insert(c.device);
  }
  for (Cell& c : cells) {
    const auto found = devices.find(c.backend);
    if (c.status != CellStatus::absent || !c.device.empty() || found == devices.end()) continue;
    if (found->second.size() == 1) c.device = *found->second.begin();
  }
}

CellTable table_of(const nlohmann::json& json, const std::string& where) {
  const CellReader reader(json, where);
  if (reader.whole("version", 0, kMostCount) != kCellsVersion) {
    reader.wrong(fmt::format("version must be {}", kCellsVersion));
  }
  CellTable table{
      .model = reader.text("model"),
      .image_size = static_cast<int>(reader.whole("image_size", 0, 1 << 20).value_or(0)),
      .images_per_epoch =
          static_cast<std::size_t>(reader.whole("images_per_epoch", 0, kMostCount).value_or(0)),
      .validation_images =
          static_cast<std::size_t>(reader.whole("validation_images", 0, kMostCount).value_or(0)),
      .parameters = reader.real("parameters", 0, kMostCellRate).value_or(0),
      .macs_per_image = reader.real("macs_per_image", 0, kMostCellRate).value_or(0),
      .maps_per_image = reader.real("maps_per_image", 0, kMostCellRate).value_or(0),
      .data = reader.text("data"),
      .seed = static_cast<std::uint64_t>(reader.whole("seed", 0, INT64_MAX).value_or(0)),
      .machine = machine_of(reader),
      .options = reader.options("options"),
      .command = reader.text("command"),
      .date = reader.text("date"),
      .commit = reader.text("commit"),
      .costs = reader.text("costs"),
      .cells = {}};
  const nlohmann::json& cells = reader.required("cells");
  if (!cells.is_array() || cells.size() > kMostCells) {
    reader.wrong(fmt::format("cells must be a list of at most {} cells", kMostCells));
  }
  for (const auto& cell : cells) {
    table.cells.push_back(
        cell_from_json(cell, fmt::format("{}, cell {}", where, table.cells.size() + 1)));
  }
  check_unique(reader, table.cells);
  complete_devices(table.cells);
  return table;
}

}  // namespace

CellTable read_cells(const std::filesystem::path& file) {
  std::string text;
  try {
    text = system::read_bounded(file, kMostBytes);
  } catch (const std::runtime_error& error) {
    fail(ExitCode::data, fmt::format("{}: {} (it should be the table of a sweep or a simulation); "
                                     "name the folder that holds one",
                                     file.string(), error.what()));
  }
  nlohmann::json json;
  try {
    json = parse_strict_json(text);
  } catch (const std::runtime_error& error) {
    fail(ExitCode::data, fmt::format("{}: {} (the table cannot be read); run the sweep or the "
                                     "simulation again, which writes it anew",
                                     file.string(), error.what()));
  }
  return table_of(json, file.string());
}

}  // namespace cputrain::cells
