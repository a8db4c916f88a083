#include <algorithm>
#include <charconv>

#include "cli/flags/flag_groups.h"
#include "core/error.h"
#include "core/text.h"
#include "run/run_logs.h"

namespace cputrain::cli {
namespace {

/// "20:25"
train::StepRange parse_steps(const std::string& text) {
  train::StepRange range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  const bool colon = first.ec == std::errc() && first.ptr != end && *first.ptr == ':';
  const auto last = colon ? std::from_chars(first.ptr + 1, end, range.last) : first;
  if (!colon || last.ec != std::errc() || last.ptr != end || range.first < 1 ||
      range.last < range.first) {
    fail(ExitCode::usage,
         "--timeline-steps " + text + ": must be FIRST:LAST, both counted from 1, such as 20:25");
  }
  return range;
}

}  // namespace

void add_log_flags(Flags& f, Config& c) {
  f.text("timeline", c.timeline, "FILE",
         "write what every rank did and when, as a Chrome trace of --timeline-steps");
  f.parsed("timeline-steps", "FIRST:LAST", "steps that --timeline shows, counted from 1 [1:20]",
           [&c](const std::string& text) { c.timeline_steps = parse_steps(text); });
  f.parsed("log-format", "NAME,...",
           "further logs: mlperf (mlperf.log), tf_cnn_benchmarks (lines on the terminal)",
           [&c](const std::string& text) {
             c.log_formats = split(text, ',');
             for (const std::string& name : c.log_formats) {
               if (std::ranges::find(run::kLogFormats, name) != std::end(run::kLogFormats))
                 continue;
               fail(ExitCode::usage, "--log-format " + text + ": " + name +
                                         " is neither mlperf nor tf_cnn_benchmarks");
             }
           });
  f.suggest("log-format", {std::begin(run::kLogFormats), std::end(run::kLogFormats)});
}

}  // namespace cputrain::cli
