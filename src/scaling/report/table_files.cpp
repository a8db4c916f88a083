#include "scaling/report/scaling_document.h"

#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "scaling/cells/axes.h"
#include "scaling/report/forms/escapes.h"
#include "scaling/report/serial_fit.h"
#include "training/request/flag_grammars.h"

namespace cputrain::report {
namespace {

using Json = nlohmann::ordered_json;
std::optional<double> reference_ratio(const std::optional<ReferenceTable>& reference,
                                      const Series& series, const cells::Cell& cell) {
  return reference ? reference->ratio(series.about, cell) : std::nullopt;
}

// clang-format off
const std::vector<CsvColumn> kCellColumns{
    {"series"}, {"backend"}, {"cpus"}, {"batch"}, {"batch_per_rank"}, {"ranks"}, {"threads"},
    {"gpus"}, {"device"}, {"precision", "/listed/precision"},
    {"allreduce", "/listed/allreduce"}, {"compress", "/listed/compress"}, {"lr", "/listed/lr"},
    {"prefetch", "/listed/prefetch"}, {"quickest"}, {"status"}, {"seconds_per_epoch"},
    {"seconds_min", "/spread/0"}, {"seconds_max", "/spread/1"}, {"repeats"}, {"steps"},
    {"includes_warm_up"}, {"images_per_second"}, {"speed_up"}, {"efficiency"}, {"suspect"},
    {"gflops"}, {"fma_gflops"}, {"peak_share"}, {"chip_share"}, {"memory_share"},
    {"beside", "/against_cpus/series"}, {"beside_cpus", "/against_cpus/cpus"},
    {"speed_up_beside", "/against_cpus/speed_up"}, {"equal_cpus", "/against_cpus/equal/cpus"},
    {"equal_cpus_min", "/against_cpus/equal_least/cpus"},
    {"equal_cpus_max", "/against_cpus/equal_most/cpus"}, {"triad_gbs"}, {"density"}, {kStolen},
    {kCpuWait}, {"peak_rank_bytes"}, {"peak_node_bytes"}, {"peak_device_bytes"},
    {"final_loss"}, {"final_accuracy"}, {"val_accuracy"}, {"reached_target"},
    {"seconds_to_target"}, {"cost"}, {"reference_ratio"}, {"limit", "/limits/what"},
    {"why", "/limits/why"}, {"reason"}, {"date"}, {"commit"}, {"kernels_version"}, {"costs"},
    {"command"}};
// clang-format on

Json series_json(const Series& series) {
  Json about = cells::to_json(series.about);
  about.erase("cells");
  about.erase("version");
  Json json{{"name", series.name},
            {"backend", series.backend},
            {"devices", training::is_device(series.backend)},
            {"about", std::move(about)},
            {"increase", nullptr}};
  if (const auto increase = batch_increase(series.strong)) {
    Json by_cpus = Json::array();
    for (const auto& [cpus, part] : increase->by_cpus) {
      by_cpus.push_back({{"cpus", cpus}, {"part", part}});
    }
    json["increase"] = {{"what", increase_text(increase->from, increase->to)},
                        {"from", increase->from},
                        {"to", increase->to},
                        {"status", cells::status_name(increase->status)},
                        {"by_cpus", std::move(by_cpus)}};
  }
  return json;
}

/// {"cpus": 63.1, "place": "within"}; "more" and "fewer" are beyond the ends of a row.
Json count_json(const cells::CpuCount& count) {
  using Place = cells::CpuCount::Place;
  const char* place = count.place == Place::more    ? "more"
                      : count.place == Place::fewer ? "fewer"
                                                    : "within";
  return {{"cpus", count.cpus}, {"place", place}};
}

/// [if all CPUs were as good as the first, as the last two go on] beyond a row's end; else null.
Json extrapolated_json(const cells::EqualCpus& equal) {
  if (equal.cpus.place != cells::CpuCount::Place::more) return nullptr;
  return {equal.perfect, equal.continued > 0 ? Json(equal.continued) : Json()};
}

/// What a cell of GPUs that stands beside CPUs has; null for others.
Json against_json(const Series& series, const ScalingCell& place) {
  if (!place.against_cpus) return nullptr;
  const AgainstCpus& against = *place.against_cpus;
  const bool ranged = against.equal.repeated;
  return {{"series", series.beside},
          {"cpus", against.cpus},
          {"speed_up", against.speed_up},
          {"speed_up_status", cells::status_name(against.speed_up_status)},
          {"equal", count_json(against.equal.cpus)},
          {"equal_extrapolated", extrapolated_json(against.equal)},
          {"equal_least", ranged ? count_json(against.equal.least) : Json()},
          {"equal_most", ranged ? count_json(against.equal.most) : Json()},
          {"equal_status", cells::status_name(against.equal.status)}};
}

Json cell_json(const Series& series, const ScalingCell& place,
               const std::optional<ReferenceTable>& reference) {
  Json json = cells::to_json(place.cell);
  json["series"] = series.name;
  const auto interval = validation_interval(series, place.cell);
  json["val_accuracy_interval"] = interval ? Json{interval->low, interval->high} : Json();
  json["images_per_second"] = known(place.images_per_second);
  json["speed_up"] = known(place.speed_up);
  json["efficiency"] = known(place.efficiency);
  json["suspect"] = place.suspect;
  json["speed_up_status"] = cells::status_name(place.against);
  json["peak_share"] = known(place.peak_share);
  json["chip_share"] = known(place.chip_share);
  json["memory_share"] = known(place.memory_share);
  json["against_cpus"] = against_json(series, place);
  json["cost"] = known(place.cost);
  json["reference_ratio"] = known(reference_ratio(reference, series, place.cell));
  Json splits = Json::array();
  for (const cells::Cell& split : place.splits) {
    splits.push_back({{"ranks", split.ranks},
                      {"threads", split.threads},
                      {"status", cells::status_name(split.status)},
                      {"reason", split.reason},
                      {"seconds_per_epoch", known(split.seconds_per_epoch)}});
  }
  json["splits"] = std::move(splits);
  return json;
}

/// A line of CSV: a split of a cell. What follows from times is known of the quickest.
Json split_row(const Series& series, const ScalingCell& place, const cells::Cell& split,
               const std::optional<ReferenceTable>& reference) {
  const bool quickest = split.ranks == place.cell.ranks && split.threads == place.cell.threads;
  Json row = quickest ? cell_json(series, place, reference) : cells::to_json(split);
  row["series"] = series.name;
  for (const cells::ListedFlag& flag : cells::kListedFlags) {
    row["listed"][std::string(flag.name)] = cells::value_of(flag, series.about, split);
  }
  row["quickest"] = quickest;
  row["repeats"] = split.repeats.size();
  if (!quickest || !place.speed_up) row["suspect"] = nullptr;
  for (const char* key : {"equal", "equal_least", "equal_most"}) {
    Json& count = row["against_cpus"][key];
    if (count.is_object() && count["place"] != "within") count = nullptr;  // beyond the CPUs' row
  }
  row["reference_ratio"] = known(reference_ratio(reference, series, split));
  row["date"] = series.about.date;
  row["commit"] = split.origin.commit;
  row["costs"] = series.about.costs;
  return row;
}

Json reference_json(const ReferenceTable& reference) {
  Json cells = Json::array(), identical = Json::array();
  for (const auto& [where, seconds] : reference.seconds) {
    cells.push_back(
        {{"cpus", where.second}, {"batch", where.first}, {"seconds_per_epoch", known(seconds)}});
  }
  for (const auto& [a, b] : identical_rows(reference)) identical.push_back({a, b});
  return {{"name", reference.name},
          {"model", reference.model},
          {"image_size", reference.image_size},
          {"images", reference.images},
          {"cells", std::move(cells)},
          {"identical_rows", std::move(identical)}};
}

Json fits_json(const ScalingTable& table, const std::optional<ReferenceTable>& reference) {
  Json fits = Json::array();
  for (const FittedRow& row : fitted_rows(table, reference)) {
    fits.push_back({{"series", row.series ? Json(row.series->name) : Json()},
                    {"published", row.series == nullptr},
                    {"batch", row.batch},
                    {"cpus_per_core", row.cpus_per_core},
                    {"serial_seconds", row.fit.serial},
                    {"work_core_seconds", row.fit.work},
                    {"largest_deviation", row.fit.largest_deviation},
                    {"times", row.fit.times},
                    {"status", cells::status_name(row.status)}});
  }
  return fits;
}

}  // namespace

std::string table_csv(const ScalingTable& table, const std::optional<ReferenceTable>& reference) {
  Csv csv(kCellColumns);
  table.for_each([&](const Series& series, const ScalingCell& place) {
    for (const cells::Cell& split : place.splits) {
      csv.add(split_row(series, place, split, reference));
    }
  });
  return csv.text();
}

Json table_json(const ScalingTable& table, const std::optional<ReferenceTable>& reference) {
  Json series = Json::array(), cells = Json::array();
  for (const Series& s : table.series) series.push_back(series_json(s));
  table.for_each([&](const Series& s, const ScalingCell& place) {
    cells.push_back(cell_json(s, place, reference));
  });
  return {{"version", 1},
          {"series", std::move(series)},
          {"cells", std::move(cells)},
          {"reference", reference ? reference_json(*reference) : Json()},
          {"fits", fits_json(table, reference)},
          {"remarks", table.remarks}};
}

}  // namespace cputrain::report
