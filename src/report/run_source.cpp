#include "report/run_source.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "cells/cell_reader.h"
#include "cells/run_figures.h"
#include "cells/run_machine.h"
#include "cells/series_identity.h"
#include "core/error.h"
#include "core/strict_json.h"
#include "core/text.h"
#include "system/bounded_file.h"

namespace cputrain::report {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostBytes = 16 << 20;
constexpr std::int64_t kMostCount = 1 << 24;

/// Flags of config.json that change times or results and have no field of their own in a table.
constexpr const char* kOptions[] = {"allreduce",    "augment", "bucket-mb",
                                    "compress",     "epochs",  "optimizer",
                                    "reproducible", "sync-bn", "target-accuracy"};

nlohmann::json json_of(const fs::path& file) {
  try {
    return parse_strict_json(system::read_bounded(file, kMostBytes));
  } catch (const std::runtime_error& problem) {
    fail(ExitCode::data, fmt::format("{}: {} (it should be what a training wrote); name folders of "
                                     "trainings or sweeps",
                                     file.string(), problem.what()));
  }
}

/// A flag's value as text, whether it was written as a text, a number or a switch.
std::string flag_text(const nlohmann::json& flags, const char* name) {
  if (!flags.contains(name)) return "";
  const nlohmann::json& value = flags.at(name);
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return text.size() > 200 ? printable(text) : text;
}

std::map<std::string, std::string> options_of(const nlohmann::json& flags) {
  std::map<std::string, std::string> options;
  for (const char* name : kOptions) {
    const std::string text = flag_text(flags, name);
    if (!text.empty() && text != "none" && text != "false") options[name] = text;
  }
  const std::string precision = flag_text(flags, "precision");
  if (!precision.empty() && precision != "float") options["precision"] = precision;
  return options;
}

/// An object without fields where there is none, or where the file is no such file.
nlohmann::json first_epoch(const fs::path& metrics) {
  try {
    system::BoundedLines lines(metrics, cells::kMetricsLimits);
    while (const auto text = lines.next()) {
      auto line = nlohmann::json::parse(*text, nullptr, false);
      if (line.is_object() && line.value("type", nlohmann::json()) == "epoch") return line;
    }
  } catch (const std::runtime_error&) {  // figures are missing for the same reason
  }
  return nlohmann::json::object();
}

/// Images of an epoch of this training; 0 where it had none.
std::size_t images_of(const fs::path& folder) {
  const auto epoch = first_epoch(folder / "metrics.jsonl");
  const cells::CellReader reader(epoch, (folder / "metrics.jsonl").string());
  return static_cast<std::size_t>(reader.whole("images", 0, 1'000'000'000'000).value_or(0));
}

/// One training: its table without cells, which cell it measured, and what it found.
struct Run {
  fs::path folder;
  cells::CellTable table;
  cells::Cell cell;
  std::optional<cells::RunFigures> figures;
};

Run read_run(const fs::path& folder) {
  const nlohmann::json flags = json_of(folder / "config.json");
  const nlohmann::json around = json_of(folder / "environment.json");
  const cells::CellReader config(flags, (folder / "config.json").string());
  const cells::CellReader environment(around, (folder / "environment.json").string());
  const auto count = [](const cells::CellReader& reader, const char* key) {
    if (!reader.knows(key)) reader.wrong(fmt::format("{} is missing", key));
    return static_cast<int>(*reader.whole(key, 1, kMostCount));
  };
  Run run{folder, {}, {}, cells::measured_figures(folder)};
  run.table.model = config.text("model");
  run.table.image_size = count(config, "image-size");
  run.table.images_per_epoch = images_of(folder);
  run.table.data = config.text("data");
  run.table.seed = static_cast<std::uint64_t>(config.whole("seed", 0, INT64_MAX).value_or(0));
  run.table.machine =
      cells::machine_of_run(around, environment.where()).value_or(cells::CellMachine{});
  run.table.options = options_of(flags);
  run.cell.ranks = count(environment, "ranks");
  run.cell.threads = count(environment, "threads_of_rank_0");
  if (std::int64_t{run.cell.ranks} * run.cell.threads > kMostCount) {
    environment.wrong("ranks times threads is too large");
  }
  run.cell.cpus = run.cell.ranks * run.cell.threads;
  run.cell.batch = static_cast<std::size_t>(count(config, "batch"));
  run.cell.backend = config.text("backend");
  return run;
}

/// A training that ended within its first epoch belongs to the others like it.
void take_images_of_others(std::vector<Run>& runs) {
  for (Run& run : runs) {
    if (run.table.images_per_epoch > 0) continue;
    cells::CellTable alike = run.table;
    for (const Run& other : runs) {
      alike.images_per_epoch = other.table.images_per_epoch;
      if (cells::identity_of(alike, run.cell) != cells::identity_of(other.table, other.cell))
        continue;
      run.table.images_per_epoch = alike.images_per_epoch;
      if (alike.images_per_epoch > 0) break;
    }
  }
}

/// A cell of all trainings of it.
cells::Cell cell_of(const std::vector<const Run*>& runs) {
  cells::Cell cell = runs.front()->cell;
  std::vector<cells::RunFigures> figures;
  for (const Run* run : runs) {
    cell.runs.push_back(run->folder.string());
    if (run->figures) {
      figures.push_back(*run->figures);
    } else {
      cell.reason =
          run->folder.string() + ": the training did not come to its end, or its files are damaged";
      cell.runs.pop_back();
    }
  }
  if (figures.empty()) return cell;
  cell.status = cells::CellStatus::measured;
  cells::combine(cell, figures, static_cast<double>(runs.front()->table.images_per_epoch), 0);
  cell.gflops.reset();  // the folders do not say how much work the model is
  if (runs.front()->table.images_per_epoch == 0) cell.images_per_second.reset();
  return cell;
}

}  // namespace

bool is_run_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "config.json", ignored) &&
         fs::is_regular_file(folder / "metrics.jsonl", ignored);
}

std::vector<CellSource> read_runs(const std::vector<fs::path>& folders) {
  using Place = std::tuple<int, int, std::size_t>;
  std::vector<Run> runs;
  for (const fs::path& folder : folders) runs.push_back(read_run(folder));
  take_images_of_others(runs);
  std::map<cells::SeriesIdentity, std::map<Place, std::vector<const Run*>>> groups;
  for (const Run& run : runs) {
    groups[cells::identity_of(run.table, run.cell)]
          [{run.cell.ranks, run.cell.threads, run.cell.batch}]
              .push_back(&run);
  }
  std::vector<CellSource> sources;
  for (const auto& [identity, places] : groups) {
    // Runs are named as they were given, so that of the table is the folder we are in.
    CellSource source{"", places.begin()->second.front()->table, {}};
    for (const auto& [place, alike] : places) source.table.cells.push_back(cell_of(alike));
    sources.push_back(std::move(source));
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    sources[i].name = sources.size() > 1 ? fmt::format("trainings {}", i + 1) : "trainings";
  }
  return sources;
}

}  // namespace cputrain::report
