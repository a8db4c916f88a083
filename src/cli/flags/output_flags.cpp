#include "cli/flags/flag_groups.h"
#include "cli/flags/sweep_flags.h"

namespace cputrain::cli {
namespace {

void add_train_output_flags(Flags& f, Config& c) {
  f.text("out", c.out, "DIR", "folder of this run [runs/<date>-<model>-np<ranks>-b<batch>]");
  f.yes("overwrite", c.overwrite,
        "--out may hold an earlier run, whose weights stay until there are new ones");
  f.whole(
      "verbose", c.verbose, 0, 3,
      "0: warnings and errors alone, 1: a bar, 2: a line an epoch, 3: that and where every rank "
      "runs [1 on a terminal, else 2]");
  f.whole("log-every", c.log_every, 0, 1'000'000'000, "step lines in metrics.jsonl [10]; 0: none");
  f.yes("profile", c.profile,
        "in the end, say how long each layer took in each direction, by what and with how many "
        "zeros, and write it to profile.json");
  f.yes("measure-limits", c.measure_limits,
        "measure the FMA peak and the memory bandwidth of all ranks together before the first "
        "step and write them to limits.json");
  f.text("end-with", c.end_with, "FILE",
         "end when nobody has a lock on FILE any more: how a sweep's ranks end with it");
  add_log_flags(f, c);
  f.yes("dry-run", c.dry_run,
        "say where ranks would run, what memory they would take and how many steps they would "
        "make, and train nothing");
  f.text("json", c.json, "FILE",
         "with --dry-run: write the plan as JSON; -: to standard output, and only it");
}

}  // namespace

void add_output_flags(Flags& f, Config& c) {
  const std::string& command = c.command;
  f.group("Output");
  if (command == "sweep") return add_sweep_output_flags(f, c);
  if (command == "train") return add_train_output_flags(f, c);
  f.text("json", c.json, "FILE", "write the result as JSON; -: to standard output, and only it");
  if (command == "eval") {
    f.text("confusion", c.confusion, "FILE",
           "write how often each class was answered with each as CSV; -: to standard output");
  }
  if (command == "predict") {
    f.whole("top", c.top, 1, 65536, "show the N most probable classes [the first; JSON: all]");
  }
  if (command == "bench")
    f.whole("repeat", c.repeat, 1, 1000,
            "measured steps, and up to three times as many where the machine's host disturbs them "
            "[5, or up to 25 that fill 8 seconds]");
}

}  // namespace cputrain::cli
