#include "scaling/report/report_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "scaling/report/scaling_document.h"
#include "scaling/report/sweep_difference.h"
#include "scaling/report/trainings/runs_document.h"
#include "system/files.h"
#include "training/request/flag_grammars.h"

namespace cputrain::report {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// The last name of a folder, or of a file that is not simply the one of a folder.
std::string short_name(const fs::path& path) {
  if (path.filename() == cells::kCellsName && path.has_parent_path())
    return short_name(path.parent_path());
  const fs::path name = path.filename().empty() ? path.parent_path().filename() : path.filename();
  return name.empty() || name == "." ? path.string() : name.string();
}

/// A folder with a table, or the table itself.
CellSource read_source(const fs::path& path) {
  if (system::is_folder(path))
    return {path, cells::read_cells(path / cells::kCellsName), short_name(path)};
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  return {folder, cells::read_cells(path), short_name(path)};
}

/// The runs of a folder, itself or those in it such as runs/; nothing where it holds none. Folders
/// in it that are none are told beside them.
std::vector<fs::path> runs_in(const fs::path& path, RunList& beside) {
  if (system::is_present(path / cells::kCellsName) || !system::is_folder(path)) return {};
  if (is_run_folder(path)) return {path};
  std::vector<fs::path> runs;
  std::vector<std::string> sweeps, others;
  for (const std::string& name : system::names_in(path)) {
    const fs::path here = path / name;
    if (!system::is_folder(here)) continue;
    const bool sweep = system::is_present(here / cells::kCellsName);
    if (!sweep && is_run_folder(here)) {
      runs.push_back(here);
    } else {
      (sweep ? sweeps : others).push_back(name);
    }
  }
  if (runs.empty()) return {};
  std::ranges::sort(sweeps);
  std::ranges::sort(others);
  beside.sweeps.insert(beside.sweeps.end(), sweeps.begin(), sweeps.end());
  beside.left_out.insert(beside.left_out.end(), others.begin(), others.end());
  return runs;
}

void check_holds_something(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error) || fs::exists(path / cells::kCellsName, error) || error)
    return;
  fail(
      ExitCode::data,
      "{}: holds no sweep ({}) and no training (metrics.jsonl), so there is nothing to report; "
      "name the --out folder of a sweep or of a training, or a folder that holds several trainings",
      path.string(), cells::kCellsName);
}

/// What the named folders hold: sweeps, which are tables of their own; and runs, which together are
/// one list, each of them once.
std::vector<CellSource> read_sources(const ReportRequest& request, RunList& list) {
  std::vector<CellSource> sweeps;
  std::set<fs::path> seen;
  for (const fs::path& path : request.folders) {
    const std::vector<fs::path> runs = runs_in(path, list);
    if (runs.empty()) {
      check_holds_something(path);
      sweeps.push_back(read_source(path));
    }
    for (const fs::path& run : runs) {
      std::error_code error;
      const fs::path place = fs::canonical(run, error);
      if (error || seen.insert(place).second) list.runs.push_back(read_run(run));
    }
  }
  tell_names_apart(list.runs);
  sort_by_accuracy(list.runs);
  return sweeps;
}

std::vector<double> all_rounded(std::vector<double> values) {
  std::ranges::transform(values, values.begin(), rounded);
  return values;
}

Json curves_json(const std::vector<CellCurve>& curves) {
  Json list = Json::array();
  for (const auto& [series, place, curve] : curves) {
    Json one{{"series", series->name},
             {"cpus", place->cell.cpus},
             {"batch", place->cell.batch},
             {"images", curve.images},
             {"loss", all_rounded(curve.loss)},
             {"seconds", all_rounded(curve.seconds)},
             {"accuracy", all_rounded(curve.accuracy)}};
    if (place->cell.batch_per_rank) {
      one["batch_per_rank"] = *place->cell.batch_per_rank;
      one["threads"] = place->cell.threads;
    }
    list.push_back(std::move(one));
  }
  return list;
}

/// Writes the document in every form and the given CSV and JSON; returns the files.
std::vector<fs::path> write_all(const fs::path& folder, const std::string& name,
                                const Document& document, const std::string& csv,
                                const std::string& json, const std::string& drawn) {
  system::make_folder(folder);
  std::vector<fs::path> files;
  const auto write = [&](const char* ending, const std::string& text) {
    files.push_back(folder / (name + ending));
    system::write_own_file(files.back(), text);
  };
  write(".md", markdown(document));
  write(".csv", csv);
  write(".json", json);
  write(".tex", latex(document));
  write(".html", html(document, drawn));
  return files;
}

/// The price of a GPU is for something that computes on one.
void check_has_devices(const cells::Prices& prices, const std::set<std::string>& backends) {
  const std::vector<std::string> all(backends.begin(), backends.end());
  for (const auto& [backend, price] : prices.per_gpu_hour) {
    const bool fits = backend.empty() ? std::ranges::any_of(all, training::is_device)
                                      : training::is_device(backend);
    if (fits) continue;
    const std::string flag =
        fmt::format("--price-per-gpu-hour {}{}", backend.empty() ? "" : backend + ":", price);
    if (!backend.empty()) {
      fail(ExitCode::usage, "{}: {} computes on CPUs; name a backend of GPUs, or leave it out",
           flag, backend);
    }
    fail(ExitCode::usage, "{}: nothing here was computed on a GPU (there {} {}); leave it out",
         flag, all.size() == 1 ? "is" : "are", join(all, ", "));
  }
}

/// A price that nothing has is a slip of the pen, not a wish; a file may have prices of others.
void check_prices(const cells::Prices& prices, const std::set<std::string>& backends) {
  if (prices.of_file) return;
  const auto check = [&](const char* flag, const std::map<std::string, double>& list) {
    for (const auto& [backend, price] : list) {
      if (backend.empty() || backends.contains(backend)) continue;
      fail(ExitCode::usage, "--{} {}:{}: nothing here has this backend; there {} {}", flag, backend,
           price, backends.size() == 1 ? "is" : "are",
           join(std::vector<std::string>(backends.begin(), backends.end()), ", "));
    }
  };
  for (const auto& [flag, list] : cells::kPriceFlags) check(flag, prices.*list);
  check_has_devices(prices, backends);
}

std::set<std::string> backends_of(const ScalingTable& table, const RunList& list) {
  std::set<std::string> backends;
  for (const Series& series : table.series) backends.insert(series.backend);
  for (const RunRecord& run : list.runs) backends.insert(run.backend);
  return backends;
}

/// The folder that a report goes to.
fs::path place_of(const ReportRequest& request) {
  if (!request.out.empty()) return request.out;
  const fs::path& first = request.folders.front();
  const fs::path beside = system::is_folder(first) ? first : first.parent_path();
  return beside.empty() ? "." : beside;
}

/// What goes on with a training from where this report is made: paths in config.json are absolute.
std::string way_to_go_on(const RunRecord& run) {
  const fs::path config = run.folder / "config.json";
  std::string how = "the command that started it, with";
  if (system::is_file(config)) {
    how = run.ranks > 1 ? fmt::format("mpirun -np {} ", *run.ranks) : "";
    how += "cputrain --config " + quoted(config.string());
  }
  return fmt::format("{} is not finished. To go on{}: {} --out {} --resume auto", run.name,
                     run.checkpoint ? fmt::format(" from step {}", *run.checkpoint)
                                    : " (from the beginning, as there is no checkpoint)",
                     how, quoted(run.folder.string()));
}

/// A line for each of the first trainings that are not finished.
std::vector<std::string> ways_to_go_on(const RunList& list) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> lines;
  std::size_t unfinished = 0;
  for (const RunRecord& run : list.runs) {
    if (run.is_unfinished() && ++unfinished <= kMost) lines.push_back(way_to_go_on(run));
  }
  if (unfinished > kMost) {
    lines.push_back(fmt::format("{} more are not finished.", unfinished - kMost));
  }
  return lines;
}

Report write_runs(const ReportRequest& request, const RunList& list) {
  check_prices(request.prices, backends_of({}, list));
  if (request.reference) {
    fail(ExitCode::usage,
         "--reference without a sweep: it belongs to the cells of sweeps, and these folders hold "
         "single trainings; leave it out");
  }
  Document document = runs_document(list);
  std::string json = json_text(runs_json(list), 1) + "\n";
  // The script of the plots looks for these in every page.
  const Json drawn{
      {"run_curves", run_curves_json(list)}, {"series", Json::array()}, {"cells", Json::array()}};
  auto files =
      write_all(place_of(request), "report", document, runs_csv(list), json, json_text(drawn));
  const bool evaluated =
      std::ranges::any_of(list.runs, [](const RunRecord& r) { return !r.evaluations.empty(); });
  // The table of runs, what differs, and their evaluations.
  const bool differ = !keys_that_differ(list.runs).empty();
  const std::size_t first = 1u + (differ ? 1 : 0) + (evaluated ? 1 : 0);
  return {std::move(document), std::move(json), std::move(files), first, ways_to_go_on(list)};
}

/// The one training of a folder; nothing where it holds a sweep.
std::optional<RunRecord> only_run_in(const fs::path& path) {
  RunList beside;
  const std::vector<fs::path> runs = runs_in(path, beside);
  if (runs.empty()) {
    check_holds_something(path);
    return std::nullopt;
  }
  if (runs.size() == 1) return read_run(runs.front());
  fail(ExitCode::data,
       "{}: holds {} trainings, and --diff compares two; name the folders of two, or give it "
       "without --diff, which compares all of them",
       path.string(), runs.size());
}

Report write_run_difference(std::vector<RunRecord> both, const fs::path& out) {
  tell_names_apart(both);
  Document document = run_difference_document(both);
  std::string json = json_text(run_difference_json(both), 1) + "\n";
  std::vector<fs::path> files;
  if (!out.empty()) {
    files = write_all(out, "diff", document, run_difference_csv(both), json, "{}");
  }
  return {std::move(document), std::move(json), std::move(files)};
}

}  // namespace

Report write_report(const ReportRequest& request) {
  RunList runs{.wanted_accuracy = request.target_accuracy, .prices = request.prices};
  const std::vector<CellSource> sources = read_sources(request, runs);
  if (sources.empty()) return write_runs(request, runs);
  if (runs.runs.empty() && request.target_accuracy) {
    fail(ExitCode::usage,
         "--target-accuracy {:g} without a single training: the cells of a sweep have the target "
         "that they were trained with; leave it out",
         *request.target_accuracy);
  }
  std::optional<ReferenceTable> reference;
  if (request.reference) reference = read_reference(*request.reference);
  const ScalingTable table = make_scaling_table(sources, request.prices);
  if (table.series.empty()) {
    fail(ExitCode::data,
         "{}: the table has no cells (there is nothing to report); run a sweep into this folder",
         request.folders.front().string());
  }
  check_prices(request.prices, backends_of(table, runs));
  const Curves curves = curves_of(table);
  Document document = scaling_document({table, sources, reference, request.prices, curves});
  Json drawn = table_json(table, reference);
  if (!runs.runs.empty()) {
    for (Section& section : runs_document(runs).sections)
      document.sections.push_back(std::move(section));
    drawn["runs"] = runs_json(runs)["runs"];
  }
  std::string json = json_text(drawn, 1) + "\n";
  drawn["curves"] = curves_json(curves.shown);
  if (!runs.runs.empty()) drawn["run_curves"] = run_curves_json(runs);
  const fs::path out = place_of(request);
  auto files =
      write_all(out, "report", document, table_csv(table, reference), json, json_text(drawn));
  const fs::path figure = out / "seconds.svg";
  if (const std::string svg = seconds_svg(table, reference); !svg.empty()) {
    system::write_own_file(figure, svg);
    files.push_back(figure);
  } else {  // that of an earlier report would show other figures than the tables beside it
    std::error_code ignored;
    fs::remove(figure, ignored);
  }
  return {std::move(document), std::move(json), std::move(files)};
}

Report write_difference(const fs::path& before, const fs::path& after, const fs::path& out) {
  const auto first = only_run_in(before), second = only_run_in(after);
  if (first && second) return write_run_difference({*first, *second}, out);
  if (first || second) {
    read_source(first ? after : before);  // which may not be there
    fail(ExitCode::data,
         "{} is a training and {} a sweep (they have no figures in common); name two sweeps or two "
         "trainings",
         (first ? before : after).string(), (first ? after : before).string());
  }
  CellSource a = read_source(before), b = read_source(after);
  const auto differences = compare_sweeps(a.table, b.table);
  if (differences.empty()) {
    fail(ExitCode::data,
         "{} and {}: no cell is in both (nothing can be compared); name two sweeps of one grid",
         before.string(), after.string());
  }
  if (a.name == b.name) a.name = before.string(), b.name = after.string();
  Document document = difference_document(differences, a, b);
  std::string json = json_text(difference_json(differences, a, b), 1) + "\n";
  std::vector<fs::path> files;
  if (!out.empty()) {
    files = write_all(out, "diff", document, difference_csv(differences), json, "{}");
  }
  return {std::move(document), std::move(json), std::move(files), 1};
}

}  // namespace cputrain::report
