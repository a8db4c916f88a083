#include "scaling/report/table_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "scaling/cells/axes.h"
#include "scaling/report/evaluation/accuracy_interval.h"
#include "scaling/report/forms/escapes.h"
#include "scaling/report/serial_fit.h"

namespace cputrain::report {
namespace {

using Json = nlohmann::ordered_json;
using Value = std::optional<double>;

Value reference_ratio(const std::optional<ReferenceTable>& reference, const Series& series,
                      const cells::Cell& cell) {
  return reference ? reference->ratio(series.about, cell) : std::nullopt;
}

constexpr const char* kCellColumns =
    "series,backend,cpus,batch,batch_per_rank,ranks,threads,gpus,device,precision,allreduce,"
    "compress,lr,"
    "prefetch,"
    "quickest,status,seconds_per_epoch,"
    "seconds_min,seconds_max,repeats,steps,includes_warm_up,images_per_second,speed_up,"
    "efficiency,suspect,gflops,fma_gflops,peak_share,chip_share,memory_share,beside,"
    "beside_cpus,speed_up_beside,equal_cpus,equal_cpus_min,equal_cpus_max,triad_gbs,stolen,cpu_"
    "wait,"
    "peak_rank_bytes,peak_node_bytes,peak_device_bytes,final_loss,"
    "final_accuracy,"
    "val_accuracy,reached_target,seconds_to_target,cost,reference_ratio,limit,why,reason,"
    "date,commit,costs,command\r\n";

std::string suspect_text(const ScalingCell& place, bool quickest) {
  if (!quickest || !place.speed_up) return "";
  return place.suspect ? "1" : "0";
}

/// Nothing beyond the ends of a row.
Value within(const cells::CpuCount& count) {
  return count.place == cells::CpuCount::Place::within ? Value(count.cpus) : std::nullopt;
}

std::string csv_line(const Series& series, const ScalingCell& place, const cells::Cell& c,
                     bool quickest, const std::optional<ReferenceTable>& reference) {
  // What follows from times is known of the quickest split.
  const auto derived = [&](Value value) { return quickest ? csv_number(value) : ""; };
  const AgainstCpus* against = quickest && place.against_cpus ? &*place.against_cpus : nullptr;
  const bool ranged = against && against->equal.repeated;
  std::string line = csv_text(series.name) + "," + csv_text(c.backend);
  const auto add = [&](const std::string& field) { line += "," + field; };
  for (const std::string& field :
       {std::to_string(c.cpus), std::to_string(c.batch),
        c.batch_per_rank ? std::to_string(*c.batch_per_rank) : "", std::to_string(c.ranks),
        std::to_string(c.threads), c.gpus > 0 ? std::to_string(c.gpus) : "", csv_text(c.device)}) {
    add(field);
  }
  for (const cells::ListedFlag& flag : cells::kListedFlags) {
    add(csv_text(cells::value_of(flag, series.about, c)));
  }
  for (const std::string& field :
       {std::string(quickest ? "1" : "0"),
        cells::status_name(c.status),
        csv_number(c.seconds_per_epoch),
        csv_number(c.spread ? Value(c.spread->min) : std::nullopt),
        csv_number(c.spread ? Value(c.spread->max) : std::nullopt),
        std::to_string(c.repeats.size()),
        std::to_string(c.steps),
        std::string(c.includes_warm_up ? "1" : "0"),
        quickest ? csv_number(place.images_per_second) : csv_number(c.images_per_second),
        derived(place.speed_up),
        derived(place.efficiency),
        suspect_text(place, quickest),
        csv_number(c.gflops),
        csv_number(c.fma_gflops),
        derived(place.peak_share),
        derived(place.rates.chip),
        derived(place.rates.memory),
        csv_text(against ? series.beside : ""),
        against ? std::to_string(against->cpus) : "",
        csv_number(against ? Value(against->speed_up) : std::nullopt),
        csv_number(against ? within(against->equal.cpus) : std::nullopt),
        csv_number(ranged ? within(against->equal.least) : std::nullopt),
        csv_number(ranged ? within(against->equal.most) : std::nullopt),
        csv_number(c.triad_gbs),
        csv_number(c.stolen),
        csv_number(c.cpu_wait),
        csv_number(c.peak_rank_bytes),
        csv_number(c.peak_node_bytes),
        csv_number(c.peak_device_bytes),
        csv_number(c.final_loss),
        csv_number(c.final_accuracy),
        csv_number(c.val_accuracy),
        c.reached_target ? std::to_string(*c.reached_target) : "",
        csv_number(c.seconds_to_target),
        derived(place.cost),
        csv_number(reference_ratio(reference, series, c)),
        csv_text(c.limits.what),
        csv_text(c.limits.why),
        csv_text(c.reason),
        csv_text(series.about.date),
        csv_text(series.about.commit),
        csv_text(series.about.costs),
        csv_text(c.command)}) {
    add(field);
  }
  return line + "\r\n";
}

Json series_json(const Series& series) {
  Json about = cells::to_json(series.about);
  about.erase("cells");
  about.erase("version");
  Json json{{"name", series.name},
            {"backend", series.backend},
            {"devices", cells::is_device(series.backend)},
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

/// Of a cell of GPUs that stands beside CPUs; null for others.
Json against_json(const Series& series, const ScalingCell& place) {
  if (!place.against_cpus) return nullptr;
  const AgainstCpus& against = *place.against_cpus;
  const bool ranged = against.equal.repeated;
  return {{"series", series.beside},
          {"cpus", against.cpus},
          {"speed_up", against.speed_up},
          {"speed_up_status", cells::status_name(against.speed_up_status)},
          {"equal", count_json(against.equal.cpus)},
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
  json["chip_share"] = known(place.rates.chip);
  json["memory_share"] = known(place.rates.memory);
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
  std::string text = kCellColumns;
  table.for_each([&](const Series& series, const ScalingCell& place) {
    for (const cells::Cell& split : place.splits) {
      const bool quickest = split.ranks == place.cell.ranks && split.threads == place.cell.threads;
      text += csv_line(series, place, split, quickest, reference);
    }
  });
  return text;
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
