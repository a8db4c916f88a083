#include "cli/manual/manual_files.h"

namespace cputrain::cli {

std::string_view man_description() {
  return R"(.SH DESCRIPTION
.B cputrain
trains image classifiers by synchronous allreduce SGD: on one core, on all cores of a machine, or on a cluster by MPI.
Each process is a rank and holds a replica of the network.
The batch is global, so the loss curve does not depend on the number of ranks,
but for rounding, and batch normalization without
.BR \-\-sync\-bn .
.PP
The first word is a command; without one it is
.BR train .
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
}

std::string_view man_surroundings() {
  return R"(.SH ENVIRONMENT
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
measured.
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
a case failed.
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
}

std::string_view man_see_also() {
  return R"(.SH "SEE ALSO"
.BR mpirun (1),
.BR srun (1)
)";
}

}  // namespace cputrain::cli
