#include "scaling/cells/cells.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/budget_json.h"
#include "core/json_text.h"
#include "core/precision.h"
#include "scaling/cells/cell_reader.h"
#include "system/files.h"

namespace cputrain::cells {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const CellMachine& m) {
  Json json{{"cpu", m.cpu},
            {"cores", m.cores},
            {"hardware_threads", m.hardware_threads},
            {"memory_bytes", m.memory_bytes},
            {"host", m.host},
            {"os", m.os},
            {"mpi", m.mpi},
            {"build", m.build}};
  if (!m.platform.empty()) json["platform"] = m.platform;
  if (m.cpus_per_core > 0) json["cpus_per_core"] = m.cpus_per_core;
  return json;
}

}  // namespace

std::string status_name(CellStatus status) {
  switch (status) {
    case CellStatus::measured:
      return "measured";
    case CellStatus::scaled:
      return "scaled";
    case CellStatus::simulated:
      return "simulated";
    case CellStatus::predicted:
      return "predicted";
    case CellStatus::absent:
      break;
  }
  return "n/a";
}

bool is_forecast(CellStatus status) {
  return status == CellStatus::simulated || status == CellStatus::predicted;
}

bool is_device(const std::string& backend) {
  const auto named = [&](std::string_view word) { return backend.find(word) != std::string::npos; };
  constexpr std::array<std::string_view, 3> kOfOthers{"gpu", "nccl", "rocm"};  // in other tables
  return std::ranges::any_of(kDeviceColumns, named) || std::ranges::any_of(kOfOthers, named);
}

std::string precision_in_figures(const std::string& backend, const std::string& precision) {
  if (precision != word_of(Precision::f32)) return precision;
  return is_device(backend) ? "tf32" : "";
}

std::string backend_in_figures(const std::string& backend, const std::string& precision) {
  const std::string word = precision_in_figures(backend, precision);
  return backend + (backend.empty() || word.empty() ? "" : " ") + word;
}

Json to_json(const Cell& c) {
  Json json{{"cpus", c.cpus},
            {"batch", c.batch},
            {"backend", c.backend},
            {"ranks", c.ranks},
            {"threads", c.threads},
            {"status", status_name(c.status)},
            {"reason", c.reason},
            {"seconds_per_epoch", known(c.seconds_per_epoch)},
            {"spread", c.spread ? Json{c.spread->min, c.spread->max} : Json()},
            {"repeats", c.repeats},
            {"steps", c.steps},
            {"images_per_second", known(c.images_per_second)},
            {"limits", {{"what", c.limits.what}, {"why", c.limits.why}}},
            {"budget", c.budget ? json_of(*c.budget) : Json()},
            {"gflops", known(c.gflops)},
            {"fma_gflops", known(c.fma_gflops)},
            {"triad_gbs", known(c.triad_gbs)},
            {"stolen", known(c.stolen)},
            {"cpu_wait", known(c.cpu_wait)},
            {"peak_rank_bytes", known(c.peak_rank_bytes)},
            {"peak_node_bytes", known(c.peak_node_bytes)},
            {"peak_device_bytes", known(c.peak_device_bytes)},
            {"includes_warm_up", c.includes_warm_up},
            {"final_loss", known(c.final_loss)},
            {"final_accuracy", known(c.final_accuracy)},
            {"val_accuracy", known(c.val_accuracy)},
            {"reached_target", known(c.reached_target)},
            {"seconds_to_target", known(c.seconds_to_target)},
            {"command", c.command},
            {"runs", c.runs}};
  if (is_device(c.backend)) {
    json["gpus"] = c.gpus > 0 ? c.gpus : c.ranks;
    json["device"] = c.device;
  }
  if (c.batch_per_rank) json["batch_per_rank"] = *c.batch_per_rank;
  if (!c.axes.empty()) json["axes"] = c.axes;
  return json;
}

Json to_json(const CellTable& t) {
  Json cells = Json::array();
  for (const Cell& cell : t.cells) cells.push_back(to_json(cell));
  Json json{{"version", kCellsVersion},
            {"model", t.model},
            {"image_size", t.image_size},
            {"images_per_epoch", t.images_per_epoch},
            {"validation_images", t.validation_images},
            {"parameters", t.parameters},
            {"macs_per_image", t.macs_per_image},
            {"data", t.data},
            {"seed", t.seed},
            {"machine", json_of(t.machine)},
            {"options", t.options},
            {"command", t.command},
            {"date", t.date},
            {"commit", t.commit}};
  if (t.maps_per_image > 0) json["maps_per_image"] = t.maps_per_image;
  if (!t.costs.empty()) json["costs"] = t.costs;
  json["cells"] = std::move(cells);
  return json;
}

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

void write_cells(const std::filesystem::path& file, const CellTable& table) {
  system::write_own_file(file, json_text(to_json(table), 1) + "\n");
}

}  // namespace cputrain::cells
