#include "scaling/cells/cells.h"

#include <fmt/format.h>

#include <set>

#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/text.h"
#include "scaling/cells/axes.h"
#include "scaling/cells/plan.h"
#include "system/bounded_file.h"
#include "system/files.h"
#include "training/request/flag_grammars.h"

namespace cputrain::cells {
namespace {

constexpr int kVersion = 1, kMostCpus = 1 << 24, kMostVersion = 1 << 24;
constexpr std::int64_t kMostCount = 1'000'000'000'000;
constexpr std::uintmax_t kMostBytes = 256 << 20;
constexpr std::size_t kLongestList = 100'000;

/// Names become columns, files and HTML: a short word.
bool is_word(const std::string& name) {
  return !name.empty() && name.size() <= 32 && std::ranges::all_of(name, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

/// A folder inside that of the table.
bool is_inside(const std::string& run) {
  const std::filesystem::path path(run);
  return !path.is_absolute() && !run.empty() && std::ranges::find(path, "..") == path.end();
}

/// Figures that contradict each other.
void check(const JsonFields& file, const Cell& cell) {
  if (!is_word(cell.backend)) file.wrong("backend must be a word of small letters and digits");
  const bool absent = cell.status == CellStatus::absent;
  if (absent == cell.seconds_per_epoch.has_value()) {
    file.wrong(absent ? "seconds_per_epoch must be null where status is n/a"
                      : "seconds_per_epoch must be a number where status is not n/a");
  }
  if (cell.spread && cell.spread->low > cell.spread->high) {
    file.wrong("spread must be [least, most]");
  }
  if (!absent && cell.spread) {
    const double slack = 1e-9 * *cell.seconds_per_epoch;
    if (*cell.seconds_per_epoch < cell.spread->low - slack ||
        *cell.seconds_per_epoch > cell.spread->high + slack) {
      file.wrong("seconds_per_epoch must lie within its spread");
    }
  }
  if (std::int64_t{cell.ranks} * cell.threads != cell.cpus) {
    file.wrong("cpus must be ranks times threads");
  }
  if (!cell.repeats.empty() && cell.reached_target > static_cast<int>(cell.repeats.size())) {
    file.wrong("reached_target must not be more than there are repeats");
  }
  if (!training::is_device(cell.backend) && (cell.gpus > 0 || !cell.device.empty())) {
    file.wrong(fmt::format("backend {} computes on no GPU, and the cell has gpus or device",
                           cell.backend));
  }
  if (training::is_device(cell.backend) && (cell.gpus < 1 || cell.gpus > cell.ranks)) {
    file.wrong("gpus must be from 1 to ranks");
  }
  for (const std::string& run : cell.runs) {
    if (!is_inside(run)) {
      file.wrong(fmt::format("runs: {} is no folder inside that of the table", printable(run)));
    }
  }
}

/// Null, or [least, most].
void describe_spread(JsonMembers& f, std::optional<Interval>& spread) {
  std::optional<std::vector<double>> ends;
  if (spread) ends = {spread->low, spread->high};
  f.may("spread", ends, 2, 2, kLeastCellSeconds, kMostCellSeconds);
  if (ends) spread = {ends->front(), ends->back()};
}

/// A cell that only says its CPUs has one thread per rank, and one GPU for each rank.
void complete(const JsonFields& file, Cell& cell) {
  if (!file.has("ranks") && cell.cpus % cell.threads == 0) cell.ranks = cell.cpus / cell.threads;
  if (training::is_device(cell.backend) && !file.has("gpus")) cell.gpus = cell.ranks;
}

void describe_cell(JsonMembers& f, Cell& c) {
  const bool devices = !f.file() && training::is_device(c.backend);
  if (devices && c.gpus == 0) c.gpus = c.ranks;
  f.need("cpus", c.cpus, 1, kMostCpus);
  f.need("batch", c.batch, 1, kMostBatch);
  f.need("backend", c.backend);
  f.may("ranks", c.ranks, 1, kMostCpus);
  f.may("threads", c.threads, 1, kMostCpus);
  f.word("status", c.status, kStatusWords);
  f.may("reason", c.reason);
  f.may("seconds_per_epoch", c.seconds_per_epoch, kLeastCellSeconds, kMostCellSeconds);
  describe_spread(f, c.spread);
  f.may("repeats", c.repeats, 0, kLongestList, kLeastCellSeconds, kMostCellSeconds);
  f.may("steps", c.steps, 0, kMostCount);
  f.may("images_per_second", c.images_per_second, 0, kMostCellRate);
  f.may_object("limits", c.limits, [](JsonMembers& l, CellLimits& limits) {
    l.may("what", limits.what);
    l.may("why", limits.why);
  });
  f.may_object("budget", c.budget, fields_of_budget);
  for (const auto& [name, member, least, most, combined] : kCellFigures) {
    f.may(name, c.*member, least, most);
    if (member == &Cell::peak_device_bytes) f.may("includes_warm_up", c.includes_warm_up);
  }
  f.may("reached_target", c.reached_target, 0, 1'000'000);
  f.may("seconds_to_target", c.seconds_to_target, 0, kMostCellSeconds);
  f.may("command", c.command);
  f.may("runs", c.runs, kLongestList);
  if (devices || f.file()) {
    f.may("gpus", c.gpus, 0, kMostCpus);
    f.may("device", c.device);
  }
  placement::describe_cpu_id(f, c.origin.cpu_id);
  f.rare("kernels_version", c.origin.kernels_version, 0, kMostVersion);
  f.rare("commit", c.origin.commit);
  f.rare("batch_per_rank", c.batch_per_rank, 1, kMostBatch);
  f.rare("axes", c.axes);
  if (!f.file()) return;
  complete(*f.file(), c);
  check(*f.file(), c);
}

void describe_machine(JsonMembers& f, CellMachine& m) {
  f.rare("name", m.name);
  f.may("cpu", m.cpu);
  placement::describe_cpu_id(f, m.cpu_id);
  f.may("cores", m.cores, 0, kMostCpus);
  f.may("hardware_threads", m.hardware_threads, 0, kMostCpus);
  f.may("memory_bytes", m.memory_bytes, 0, 1e18);
  f.may("host", m.host);
  f.may("os", m.os);
  f.may("mpi", m.mpi);
  f.may("build", m.build);
  f.rare("platform", m.platform);
  f.rare("cpus_per_core", m.cpus_per_core, 0, kMostCpus);
}

/// Which of two figures for one place holds could not be decided.
void check_unique(const JsonFields& file, const std::vector<Cell>& cells) {
  std::set<Place> seen;
  for (const Cell& c : cells) {
    if (seen.insert(place_of(c)).second) continue;
    file.wrong("two cells of " + cell_text(c));
  }
}

/// What was never measured was meant for what measured the others.
void complete_absent(std::vector<Cell>& cells) {
  std::map<std::string, std::set<std::string>> devices;
  std::map<std::string, CellOrigin> origins;
  for (const Cell& c : cells) {
    if (!c.device.empty()) devices[c.backend].insert(c.device);
    if (c.status == CellStatus::absent) continue;
    const auto [found, fresh] = origins.try_emplace(c.backend, c.origin);
    if (!fresh) found->second = found->second.common(c.origin);
  }
  for (Cell& c : cells) {
    if (c.status != CellStatus::absent) continue;
    const std::set<std::string>& names = devices[c.backend];
    if (c.device.empty() && names.size() == 1) c.device = *names.begin();
    if (c.origin == CellOrigin{}) c.origin = origins[c.backend];
  }
}

void describe_table(JsonMembers& f, CellTable& t) {
  int version = kVersion;
  f.may("version", version, 0, 1 << 30);
  if (f.file() && (version != kVersion || !f.file()->has("version"))) {
    f.file()->wrong(fmt::format("version must be {}", kVersion));
  }
  f.may("model", t.model);
  f.may("image_size", t.image_size, 0, 1 << 20);
  f.may("images_per_epoch", t.images_per_epoch, 0, kMostCount);
  f.may("validation_images", t.validation_images, 0, kMostCount);
  f.may("parameters", t.parameters, 0, kMostCellRate);
  f.may("macs_per_image", t.macs_per_image, 0, kMostCellRate);
  f.may("data", t.data);
  f.may("seed", t.seed, 0, INT64_MAX);
  f.may_object("machine", t.machine, describe_machine);
  f.may("options", t.options);
  f.may("command", t.command);
  f.may("date", t.date);
  f.may("commit", t.commit);
  f.rare("maps_per_image", t.maps_per_image, 0, kMostCellRate);
  f.rare("costs", t.costs);
  f.rare("weights", t.weights);
  f.objects("cells", t.cells, 0, kMostCells, describe_cell);
  if (!f.file()) return;
  check_unique(*f.file(), t.cells);
  complete_absent(t.cells);
}

}  // namespace

std::string status_name(CellStatus status) {
  for (const auto& [known, word] : kStatusWords) {
    if (known == status) return std::string(word);
  }
  return "";
}

bool is_forecast(CellStatus status) {
  return status == CellStatus::simulated || status == CellStatus::predicted;
}

CellOrigin CellOrigin::common(const CellOrigin& other) const {
  CellOrigin both;
  if (cpu_id.kind() == other.cpu_id.kind()) both.cpu_id = cpu_id;
  if (kernels_version == other.kernels_version) both.kernels_version = kernels_version;
  if (commit == other.commit) both.commit = commit;
  return both;
}

std::optional<double> Prices::of(const std::string& backend, int cpus, double seconds) const {
  const double hours = seconds / 3600;
  for (const std::string& name : {backend, std::string()}) {
    const auto gpu = per_gpu_hour.find(name);
    if (training::is_device(backend) && gpu != per_gpu_hour.end())
      return hours * cpus * gpu->second;
    if (const auto found = per_hour.find(name); found != per_hour.end()) {
      return hours * found->second;
    }
    if (const auto found = per_cpu_hour.find(name); found != per_cpu_hour.end()) {
      return hours * cpus * found->second;
    }
  }
  return std::nullopt;
}

std::optional<double> Prices::of(const Cell& cell) const {
  if (!cell.seconds_per_epoch) return std::nullopt;
  const int units = cell.gpus > 0 ? cell.gpus : cell.cpus;
  return of(cell.backend, units, *cell.seconds_per_epoch);
}

nlohmann::ordered_json to_json(const Cell& cell) { return json_of(cell, describe_cell); }

Cell cell_from_json(const nlohmann::json& json, const std::string& where) {
  return value_of<Cell>({json, where, kTableRemedy}, describe_cell);
}

nlohmann::ordered_json to_json(const CellTable& table) { return json_of(table, describe_table); }

CellTable read_cells(const std::filesystem::path& file) {
  const nlohmann::json json = system::read_json_file(file, kMostBytes, kTableRemedy);
  return value_of<CellTable>({json, file.string(), kTableRemedy}, describe_table);
}

void write_cells(const std::filesystem::path& file, const CellTable& table) {
  system::write_own_file(file, json_text(to_json(table), 1) + "\n");
}

}  // namespace cputrain::cells
