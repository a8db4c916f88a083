#include "cli/manual/manual_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "core/version.h"

namespace cputrain::cli {
namespace {

constexpr const char* kDescription = R"(.SH DESCRIPTION
.B cputrain
trains image classifiers by synchronous allreduce SGD: on one core, on all cores of a machine, or on a cluster by MPI.
Each process is a rank and holds a replica of the network.
The batch is global, so the loss curve does not depend on the number of ranks,
but for rounding, and batch normalization without
.BR \-\-sync\-bn .
.PP
The first word is a command; where flags come first it is
.BR train .
Without any word the program helps.
Hyphens and underscores in flags are the same, and
.BI \-\-flag= value
is
.BI \-\-flag\~ value\fR.
Words behind
.B \-\-
are files, whatever they begin with.
A flag on the command line goes before the environment, that before a
.B \-\-config
file, and that before the recipe of the model.
.PP
.B cputrain
.I COMMAND
.B \-\-help
shows the flags that most people need,
.B \-\-help\-all
all of them.
.SH STALLS
Whatever all others wait for is named by rank, host, step and phase within 65 s, by a rank that still can.
It stands on standard error and in the run folder, and is said once more every minute.
.PP
After
.B \-\-stall\-timeout
every rank that can ends with 76. Rank 0 first finishes the checkpoint that it is writing, for three seconds at most.
.PP
A rank that comes back goes on as if nothing had been, and a line says how long it was away.
Slow is not stalled: a rank that computes is named and ends nothing.
.PP
Storage of the run folder that hangs or slows is named, too. It delays checkpoints and lines of logs, not steps.
After a signal it is waited for twenty seconds; then the job ends with 74, or with 130 after Ctrl\-C.
.PP
A rank that ends before or in MPI's start, or never comes, is named within
.B \-\-start\-timeout
by the ranks of its machine. Those of other machines are counted.
Ranks of another build end with 64 before the first step, with a table.
.PP
A cut link between hosts is named by both sides, which end with 76;
a link that comes back within the time\-out goes on.
.PP
It costs each rank one thread and one UDP socket.
)";

constexpr const char* kSurroundings = R"(.SH ENVIRONMENT
.TP
.BI CPUTRAIN_ FLAG
Every flag, in capitals and with underscores:
.B CPUTRAIN_BATCH=32
is
.BR "\-\-batch 32" .
A variable that is no flag of any command is refused.
.TP
.B CPUTRAIN_PLUGINS
The folder in which
.B \-\-backend cuda
looks for its plugin, in place of those below FILES.
.TP
.B OMP_NUM_THREADS
Counts as
.BR \-\-threads .
.TP
.BR OMP_PROC_BIND ", " OMP_PLACES ", " GOMP_CPU_AFFINITY
Where one of them is set, the program leaves the binding of threads to it.
.TP
.BR GOMP_SPINCOUNT ", " OMP_WAIT_POLICY
How long threads spin before they sleep. The program has a short time of its own where neither is set.
.TP
.B CUDA_VISIBLE_DEVICES
The GPUs that the program may use.
.TP
.B LD_LIBRARY_PATH
Where libnccl.so.2 is looked for, too: NCCL, with which several GPUs sum.
.TP
.B NCCL_NVLS_ENABLE
Where it is not set, NCCL does without NVLink SHARP, whose sums differ from call to call.
.TP
.B TMPDIR
Where images lie that the ranks of a node share, if shared memory is too small.
.SH FILES
.TP
.I runs/DATE\-MODEL\-npN\-bBATCH/
The folder of a run, unless
.B \-\-out
names another one: config.json, environment.json, metrics.jsonl, weights.safetensors, checkpoints and logs;
stalls.jsonl where ranks kept the others waiting.
.TP
.I ~/.cache/cputrain/
Costs of layers that
.B simulate
measured; in weights/ what
.B weights fetch
brought.
.TP
.I ../lib/cputrain/libcputrain_cuda.so
The plugin of
.BR "\-\-backend cuda" ,
seen from the program's folder. It may also lie beside the program.
.TP
.I cputrain\-smpi
The program of
.BR simulate ,
beside cputrain. On Debian it is in the package cputrain\-simulator.
.TP
.I ../share/cputrain/
Model files to start from (models/) and a published table for
.B report \-\-reference
(reference/).
.SH "EXIT STATUS"
.TP
.B 0
Done.
.TP
.B 1
The training failed: the loss or a weight is NaN or infinite. Of
.BR selftest :
a case failed. Of
.BR "data check" :
more than a tenth of the files are not read.
.TP
.B 2
Wrong usage, a GPU where there is none, or more memory, threads or space than there is.
.TP
.B 64
Ranks differ: in their program, flags, data or weights; or their launcher is not one that their MPI knows.
.TP
.B 65
Bad data, weight file, model file or checkpoint.
.TP
.B 70
An internal error, or the system refused memory or a thread in the middle of the work.
.TP
.B 74
Output cannot be written, or storage did not answer after a signal. A reader that goes away is no error where the results
are files, as those of a training are.
.TP
.B 75
Ended by SIGUSR1, SIGTERM or SIGHUP after saving. The same command with
.B \-\-resume auto
goes on.
.TP
.B 76
No rank got further for
.B \-\-stall\-timeout
seconds, ranks did not come within
.BR \-\-start\-timeout ,
or the launcher of this rank is gone.
.TP
.B 130
Interrupted by Ctrl\-C.
.PP
mpirun may end with a code of its own.
)";

constexpr const char* kSeeAlso = R"(.SH "SEE ALSO"
.BR mpirun (1),
.BR srun (1)
)";

/// Text that man(7) shows as it is: no letter of it begins a macro or an escape.
std::string shown(std::string text) {
  text = replaced(std::move(text), "\\", "\\e");
  text = replaced(std::move(text), "--", "\\-\\-");
  if (text.starts_with('.') || text.starts_with('\'')) text.insert(0, "\\&");
  return text;
}

/// The same for what people type, whose hyphens are to be copied.
std::string typed(const std::string& text) {
  std::string result;
  for (const char letter : text)
    result += letter == '-' ? "\\-" : letter == '\\' ? "\\e" : std::string(1, letter);
  if (result.starts_with('.') || result.starts_with('\'')) result.insert(0, "\\&");
  return result;
}

std::string bold(const std::string& text) { return "\\fB" + typed(text) + "\\fR"; }

/// Names of a value in italics: "N", "none|six".
std::string italic(const std::string& text) { return "\\fI" + typed(text) + "\\fR"; }

std::string section(const std::string& name) { return ".SH " + name + "\n"; }
std::string subsection(const std::string& name) { return ".SS " + shown(name) + "\n"; }
std::string item(const std::string& head, const std::string& body) {
  return ".TP\n" + head + "\n" + body + "\n";
}

/// The help text or the name of the value has them anyway.
bool names_choices(const FlagEntry& flag) {
  return std::ranges::all_of(flag.choices, [&](const std::string& word) {
    return (flag.help + "|" + flag.meta).find(word) != std::string::npos;
  });
}

std::string flag_item(const FlagEntry& flag) {
  std::string head = bold(flag.spelling());
  if (flag.takes_value) head += " " + italic(flag.meta);
  std::string body = shown(flag.help);
  if (!names_choices(flag)) body += "\n(one of " + shown(join(flag.choices, ", ")) + ")";
  if (!flag.standard.empty()) body += "\n(default: " + shown(flag.standard) + ")";
  if (!flag.aliases.empty()) {
    std::vector<std::string> words;
    for (const std::string& word : flag.aliases) words.push_back(bold("--" + word));
    body += "\nAlso " + join(words, ", ") + ".";
  }
  return item(head, body);
}

/// Flags with a heading for each group.
std::string by_group(const std::vector<FlagEntry>& flags) {
  std::string text, group;
  for (const FlagEntry& flag : flags) {
    if (flag.group != group) text += subsection(flag.group);
    group = flag.group;
    text += flag_item(flag);
  }
  return text;
}

bool same(const FlagEntry& a, const FlagEntry& b) {
  return a.name == b.name && a.meta == b.meta && a.help == b.help && a.standard == b.standard &&
         a.negatable == b.negatable;
}

/// What a command has beside those of train, and the names of those that it shares with train.
std::string flags_beside(const CommandEntry& command, const std::vector<FlagEntry>& of_train) {
  std::string text = subsection("Flags of " + command.full_name());
  std::vector<std::string> shared;
  std::string own;
  for (const FlagEntry& flag : command.flags) {
    const bool is_shared =
        std::ranges::any_of(of_train, [&](const FlagEntry& other) { return same(flag, other); });
    if (is_shared) {
      shared.push_back(bold(flag.spelling()));
    } else {
      own += flag_item(flag);
    }
  }
  if (!shared.empty()) text += "As in train: " + join(shared, ",\n") + ".\n";
  return text + own;
}

std::string synopsis(const std::vector<CommandEntry>& commands) {
  std::string text = section("SYNOPSIS");
  for (const CommandEntry& command : commands) {
    if (!command.topics.empty()) continue;
    if (&command != &commands.front()) text += ".br\n";
    text +=
        "\\fBcputrain\\fR " + typed(command.usage.substr(std::string("cputrain ").size())) + "\n";
  }
  return text + ".br\n\\fBmpirun \\-np\\fR \\fIN\\fR \\fBcputrain\\fR [COMMAND] [FLAGS]\n";
}

std::string list_of_commands(const std::vector<CommandEntry>& commands) {
  std::string text = section("COMMANDS");
  for (const CommandEntry& command : commands)
    text += item(bold(command.full_name()), shown(command.about));
  return text;
}

std::string examples(const std::vector<CommandEntry>& commands) {
  std::string text = section("EXAMPLES");
  for (const CommandEntry& command : commands) {
    if (!command.topics.empty()) continue;  // its topics have their own
    for (const ExampleEntry& example : command.examples)
      text += item(bold(example.command), shown(example.does));
  }
  return text;
}

}  // namespace

std::string man_page(const std::vector<CommandEntry>& commands) {
  const auto train = std::ranges::find(commands, "train", &CommandEntry::name);
  const std::vector<FlagEntry> of_train =
      train == commands.end() ? std::vector<FlagEntry>{} : train->flags;
  std::string text = fmt::format(
      ".\\\" Written by cputrain_manual from the program's table of flags.\n"
      ".TH CPUTRAIN 1 \"\" \"cputrain {}\" \"User Commands\"\n"
      ".nh\n.ad l\n",  // no hyphens inside of flags and names of files
      kVersion);
  text += section("NAME") + "cputrain \\- train image classifiers on CPUs\n";
  text += synopsis(commands);
  text += kDescription;
  text += list_of_commands(commands);
  text += section("FLAGS OF TRAIN") + by_group(of_train);
  text += section("FLAGS OF OTHER COMMANDS");
  text += "A flag that works as in train is only named here.\n";
  for (const CommandEntry& command : commands) {
    if (command.name != "train" && command.topics.empty()) text += flags_beside(command, of_train);
  }
  text += kSurroundings;
  return text + examples(commands) + kSeeAlso;
}

}  // namespace cputrain::cli
