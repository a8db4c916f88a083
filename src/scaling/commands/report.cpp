#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/text.h"
#include "scaling/cells/cells.h"
#include "scaling/commands/commands.h"
#include "scaling/report/report_files.h"
#include "system/bounded_file.h"
#include "system/files.h"
#include "system/print.h"

namespace cputrain::commands {
namespace {

struct ReportOptions : cli::Options {
  std::string reference, prices_file;
  cells::Prices prices;
  bool diff = false;
};

constexpr double kMostPrice = 1e9;

std::optional<double> price_of(const std::string& text) {
  const auto price = number_in<double>(text);
  return price >= 0.0 && price <= kMostPrice ? price : std::nullopt;
}

/// "3.2", or by backend "cpu:3.2,cuda:12".
std::map<std::string, double> parse_prices(const std::string& flag, const std::string& text) {
  std::map<std::string, double> prices;
  for (const std::string& part : split(text, ',')) {
    const auto colon = part.find(':');
    const std::string backend = colon == std::string::npos ? "" : part.substr(0, colon);
    const auto price = price_of(colon == std::string::npos ? part : part.substr(colon + 1));
    if (!price || colon == 0 || !prices.emplace(backend, *price).second) {
      fail(ExitCode::usage,
           "--{} {}: must be a price from 0 to {:g}, or one for each backend, such as "
           "cpu:3.2,cuda:12",
           flag, text, kMostPrice);
    }
  }
  return prices;
}

/// A GPU's hour and another price, both of one named backend.
void check_gpu_prices(const cells::Prices& prices) {
  for (const auto& [backend, price] : prices.per_gpu_hour) {
    const bool per_cpu = prices.per_cpu_hour.contains(backend);
    if (backend.empty() || (!per_cpu && !prices.per_hour.contains(backend))) continue;
    fail(ExitCode::usage,
         "--price-per-gpu-hour {0}:{1} and --price-per-{2}hour are both of backend {0}; give one "
         "of them",
         backend, price, per_cpu ? "cpu-" : "");
  }
}

/// One price for each backend: of two, it could not be known which holds.
void check_prices(const cells::Prices& prices) {
  check_gpu_prices(prices);
  for (const auto& [backend, price] : prices.per_hour) {
    if (!prices.per_cpu_hour.contains(backend)) continue;
    const std::string whose = backend.empty() ? "all backends" : "backend " + backend;
    fail(ExitCode::usage,
         "--price-per-hour {} and --price-per-cpu-hour {} are both of {}; give one of them, or "
         "name the backends (cpu:3.2)",
         price, prices.per_cpu_hour.at(backend), whose);
  }
}

/// Adds those of a file: "price-per-cpu-hour,cpu,0.05" a line, remarks behind #. Error(data).
void read_prices(const std::string& file, cells::Prices& prices) {
  constexpr std::uintmax_t kMostBytes = 1 << 16;
  std::string text;
  try {
    text = system::read_bounded(file, kMostBytes);
  } catch (const std::runtime_error& error) {
    fail(ExitCode::data, "--prices {}: {} (costs are of its prices); name another file", file,
         error.what());
  }
  prices.of_file = true;
  int number = 0;
  for (std::string line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string> parts = split(line, ',');
    const auto list = std::ranges::find_if(
        cells::kPriceFlags, [&](const auto& known) { return known.first == parts.front(); });
    const auto price = parts.size() == 3 ? price_of(parts[2]) : std::nullopt;
    if (list == cells::kPriceFlags.end() || !price) {
      fail(ExitCode::data,
           "--prices {}, line {}: {} (not a price, so costs would be wrong); write a flag's name, "
           "the backend and a price from 0 to {:g}, such as price-per-cpu-hour,cpu,0.05",
           file, number, printable(line), kMostPrice);
    }
    if ((prices.*list->second).emplace(parts[1], *price).second) continue;
    fail(ExitCode::data,
         "--prices {}, line {}: {} (this price is there already, in the file or by --{}); "
         "leave one of them out",
         file, number, printable(line), list->first);
  }
  check_prices(prices);
}

/// What people want to see at once: the first tables, and what is there only where it was asked
/// for. All of it is in the files.
report::Document beginning(report::Document document, std::size_t sections) {
  constexpr std::size_t kMostRows = 40;
  std::size_t place = 0;
  std::erase_if(document.sections, [&](const report::Section& section) {
    return place++ >= sections && section.id != "reference" && section.id != "cost";
  });
  for (report::Section& section : document.sections) {
    for (report::DocumentTable& table : section.tables) {
      if (table.rows.size() <= kMostRows) continue;
      section.remarks.push_back(
          fmt::format("{} more rows are in the files.", table.rows.size() - kMostRows));
      table.rows.resize(kMostRows);
    }
  }
  return document;
}

void say(const report::Report& report, const std::string& json) {
  if (json == "-") {
    system::print_lines(report.json);
    return;
  }
  if (!json.empty()) system::write_given_file(json, report.json);
  system::print_lines(report::markdown(beginning(report.document, report.first_sections)));
  for (const auto& file : report.files) system::print("Wrote {}\n", file.string());
  for (const std::string& line : report.to_go_on) system::print("{}\n", line);
}

void add_report_flags(cli::Flags& f, ReportOptions& c, const cli::CommandLineChoices&) {
  f.group("Report");
  f.text("reference", c.reference, "FILE",
         "published table to show beside ours: CSV with cpus, batch, seconds_per_epoch "
         "(results/reference/paper_table3.csv)");
  f.text("prices", c.prices_file, "FILE",
         "prices in a file, a line each: price-per-cpu-hour,cpu,0.05, by the names of the flags "
         "below (results/reference/prices_example.csv)");
  constexpr const char* kHelp[] = {
      "price of the whole machine, for the cost of an epoch or a training: 3.2, or by backend "
      "cpu:3.2,cuda:12",
      "price of each CPU or GPU that works: 0.05, or by backend cpu:0.05,cuda:3",
      "price of each GPU that works, the CPUs beside it included: 3, or by backend cuda:3"};
  for (const char* const* help = kHelp; const auto& [name, list] : cells::kPriceFlags) {
    std::map<std::string, double>& prices = c.prices.*list;
    f.parsed(name, "PRICE", *help++, [flag = name, &prices](const std::string& text) {
      prices = parse_prices(flag, text);
    });
  }
  f.real("target-accuracy", c.target_accuracy, 0, 1,
         "of single trainings: say which was the quickest to this accuracy of validation [the one "
         "that most reached]");
  f.yes("diff", c.diff,
        "compare two sweeps cell by cell, or two trainings: report --diff BEFORE AFTER; files are "
        "written with --out alone");
  f.group("Output");
  f.text("out", c.out, "DIR", "folder for report.md, .csv, .json, .tex and .html [the first DIR]");
  f.text("json", c.json, "FILE",
         "also write report.json to FILE (-: to standard output, and nothing else there)");
}

void check_report(const ReportOptions& options, const cli::CommandLineChoices&) {
  const auto& folders = options.files;
  if (folders.empty()) {
    fail(ExitCode::usage, "report needs the folder of a sweep or of trainings: {} report DIR...",
         options.program);
  }
  check_prices(options.prices);
  if (!options.diff) return;
  if (folders.size() != 2) {
    fail(ExitCode::usage,
         "--diff compares two sweeps or two trainings, not {}: {} report --diff BEFORE AFTER",
         folders.size(), options.program);
  }
  const char* odd = !options.reference.empty()     ? "reference"
                    : !options.prices_file.empty() ? "prices"
                    : options.target_accuracy      ? "target-accuracy"
                                                   : nullptr;
  for (const auto& [flag, list] : cells::kPriceFlags) {
    if (!odd && !(options.prices.*list).empty()) odd = flag;
  }
  if (odd) {
    fail(ExitCode::usage,
         "--{} with --diff, which compares what was measured and nothing else; leave one out", odd);
  }
  std::error_code none;  // no such folder: it says so when it is read
  if (std::filesystem::equivalent(folders[0], folders[1], none)) {
    fail(ExitCode::usage,
         "--diff {} {}: both are one folder (nothing can differ); name another one beside it",
         folders[0], folders[1]);
  }
}

ExitCode run_report(const ReportOptions& options, const training::Services&) {
  const auto& folders = options.files;
  if (options.diff) {
    say(report::write_difference(folders[0], folders[1], options.out), options.json);
    return ExitCode::ok;
  }
  report::ReportRequest request{{folders.begin(), folders.end()},
                                options.out,
                                std::nullopt,
                                options.prices,
                                options.target_accuracy};
  if (!options.reference.empty()) request.reference = options.reference;
  if (!options.prices_file.empty()) read_prices(options.prices_file, request.prices);
  say(report::write_report(request), options.json);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<cli::Command> make_report() {
  return cli::make_command<ReportOptions>(
      {.help =
           {.name = "report",
            .summary = "tables and a page with plots from the folders of sweeps and runs",
            .about = "Makes tables and an HTML page with plots from the folders of sweeps or of "
                     "trainings.",
            .words = "DIR...",
            .examples = {{"cputrain report sweeps/mine",
                          "Prints the tables and writes report.html and others into the folder."},
                         {"cputrain report --diff sweeps/before sweeps/after",
                          "Compares two sweeps cell by cell."},
                         {"cputrain report --diff runs/a runs/b",
                          "Says what differs between two trainings, in flags and in figures."}},
            .common = {"out", "reference", "prices", "price-per-hour", "price-per-cpu-hour",
                       "price-per-gpu-hour", "diff", "json"},
            .others = "plot,visualize,tensorboard,history,compare,diff,table"},
       .task = {.trains = false, .one_job = false},
       .add_flags = add_report_flags,
       .check = check_report,
       .run = run_report});
}

}  // namespace cputrain::commands
