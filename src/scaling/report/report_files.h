#pragma once

#include "scaling/cells/cells.h"
#include "scaling/report/forms/document.h"

namespace cputrain::report {

/// What a report is made of and where it goes.
struct ReportRequest {
  /// Sweeps, or their files (cells.json); single trainings, or folders that hold such.
  std::vector<std::filesystem::path> folders;
  std::filesystem::path out;  ///< folder; empty: the first of `folders`
  std::optional<std::filesystem::path> reference;
  cells::Prices prices;
  std::optional<double> target_accuracy{};  ///< for runs: which is the quickest to it
};

struct Report {
  Document document;
  std::string json;                          ///< text of report.json or diff.json
  std::vector<std::filesystem::path> files;  ///< that were written
  std::size_t first_sections = 3;            ///< that a terminal shows
  std::vector<std::string> to_go_on{};       ///< what a terminal shows last: how to go on
};

/// Reads everything, checks it, and then writes report.md, .csv, .json, .tex and .html, and
/// seconds.svg of a sweep. Sweeps make a scaling table, single trainings a
/// table of runs; where both are named, the runs have sections after those of the sweeps, and
/// report.csv has the cells alone.
/// Error(data) for what cannot be read, Error(output) for what cannot be written.
Report write_report(const ReportRequest&);

/// Two sweeps or two trainings beside each other: report --diff. Files are written where `out` is
/// given (diff.md, .csv, .json, .tex, .html).
Report write_difference(const std::filesystem::path& before, const std::filesystem::path& after,
                        const std::filesystem::path& out);

}  // namespace cputrain::report
