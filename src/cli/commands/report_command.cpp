#include <fmt/format.h>

#include "cli/commands.h"
#include "core/error.h"
#include "scaling/report/report_files.h"
#include "system/files.h"
#include "system/print.h"

namespace cputrain::cli {
namespace {

/// What people want to see at once: the first tables; all of it is in the files.
report::Document beginning(report::Document document, std::size_t sections) {
  constexpr std::size_t kMostRows = 40;
  if (document.sections.size() > sections) document.sections.resize(sections);
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
}

}  // namespace

int run_report(const Config& config, const training::Services&) {
  const auto& folders = config.files;
  if (config.diff) {
    say(report::write_difference(folders[0], folders[1], config.out), config.json);
    return static_cast<int>(ExitCode::ok);
  }
  report::ReportRequest request{{folders.begin(), folders.end()},
                                config.out,
                                std::nullopt,
                                config.prices,
                                config.target_accuracy};
  if (!config.reference.empty()) request.reference = config.reference;
  say(report::write_report(request), config.json);
  return static_cast<int>(ExitCode::ok);
}

}  // namespace cputrain::cli
