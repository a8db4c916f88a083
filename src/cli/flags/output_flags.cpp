#include "cli/flags/flag_groups.h"
#include "cli/flags/sweep_flags.h"

namespace cputrain::cli {
namespace {

void add_train_output_flags(Flags& f, Config& c) {
  add_part(f, c, "output");
  f.text("end-with", c.end_with, "FILE",
         "end when no process has a lock on FILE any more; sweeps start ranks with it");
  add_part(f, c, "logs");
  f.yes("dry-run", c.dry_run, "show placement, memory and the number of steps, and train nothing");
  f.text("json", c.json, "FILE",
         "with --dry-run: write the plan as JSON (-: to standard output, and nothing else there)");
}

}  // namespace

void add_output_flags(Flags& f, Config& c) {
  const std::string& command = c.command;
  f.group("Output");
  if (command == "sweep") return add_sweep_output_flags(f, c);
  if (command == "train") return add_train_output_flags(f, c);
  f.text("json", c.json, "FILE",
         "write the result as JSON (-: to standard output, and nothing else there)");
  if (command == "eval") {
    f.text("confusion", c.confusion, "FILE",
           "write the confusion matrix as CSV (-: to standard output)");
    f.text("page", c.page, "FILE",
           "write one HTML page: confusion matrix, figures by class, and the images that were most "
           "surely answered wrong (-: to standard output)");
  }
  if (command == "predict") {
    f.text(
        "csv", c.csv, "FILE",
        "write a row per file as CSV: its name, its class, and the probability of each class (-: "
        "to standard output, and nothing else there)");
    f.whole("top", c.top, 1, 65536, "show the N most probable classes [1; JSON has all]");
  }
  if (command == "bench")
    f.whole("repeat", c.repeat, 1, 1000,
            "measured steps, up to three times as many where other work disturbs them [5, or up to "
            "25 that fill 8 seconds]");
}

}  // namespace cputrain::cli
