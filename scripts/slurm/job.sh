# shellcheck shell=bash
# Sourced by the batch scripts: what Slurm says of the job, and the way back into the queue. A variable that is missing
# is worked out from others, or the script ends with 2 and a sentence that names it.

refuse() {
  echo "${0##*/}: $*" >&2
  exit 2
}

# first_number NAME...  sets `answer` to the first of these variables that is set; fails where none is.
answer=''
first_number() {
  local name
  for name; do
    [[ -n ${!name-} ]] || continue
    [[ ${!name} =~ ^[0-9]+$ ]] || refuse "$name is ${!name}, where a number belongs"
    answer=$((10#${!name}))
    return 0
  done
  return 1
}

# sum_of NAME [DIVISOR]  sets `answer` to the sum of a list with an entry per node, each divided: "2(x3),1" has 7.
sum_of() {
  local name=$1 divisor=${2:-1} entry each
  [[ -n ${!name-} ]] || return 1
  answer=0
  for entry in ${!name//,/ }; do
    [[ $entry =~ ^([0-9]+)(\(x([0-9]+)\))?$ ]] || refuse "$name is ${!name}, where a list such as 2(x3),1 belongs"
    each=$((10#${BASH_REMATCH[1]} / divisor))
    answer=$((answer + each * 10#${BASH_REMATCH[3]:-1}))
  done
}

# Functions of a part of a heterogeneous job get the end of its variables' names (_HET_GROUP_0), others nothing.

# count_nodes PART  sets `answer`; fails where nothing tells.
count_nodes() {
  local list name hosts
  ! first_number "SLURM_JOB_NUM_NODES$1" "SLURM_NNODES$1" || return 0
  for name in "SLURM_JOB_NODELIST$1" "SLURM_NODELIST$1"; do
    list=${!name-}
    [[ -n $list ]] || continue
    hosts=$(scontrol show hostnames "$list") || refuse "scontrol does not understand $name, which is $list"
    answer=$(grep -c . <<<"$hosts")
    return 0
  done
  return 1
}

# count_tasks PART  sets `answer`: what was asked for, else what fits the CPUs, as sbatch itself has it, else a task per
# node.
count_tasks() {
  local per
  ! first_number "SLURM_NTASKS$1" "SLURM_NPROCS$1" || return 0
  if first_number "SLURM_NTASKS_PER_NODE$1"; then
    per=$answer
    count_nodes "$1" || refuse "SLURM_NTASKS_PER_NODE$1 is $per, and nothing says on how many nodes (SLURM_NNODES$1)"
    answer=$((per * answer))
    return 0
  fi
  ! sum_of "SLURM_TASKS_PER_NODE$1" || return 0
  first_number "SLURM_CPUS_PER_TASK$1" || answer=1
  per=$((answer > 0 ? answer : 1))
  if sum_of "SLURM_JOB_CPUS_PER_NODE$1" "$per" && [[ $answer -gt 0 ]]; then return 0; fi
  count_nodes "$1" || refuse "neither SLURM_NTASKS$1 nor SLURM_NNODES$1 is set, so the number of ranks is not known:" \
    "submit with --ntasks=N"
}

# count_cpus PART TASKS  sets `answer` to the CPUs per task: those of the nodes shared out, where all nodes are alike.
count_cpus() {
  local tasks=$2 nodes list=SLURM_JOB_CPUS_PER_NODE$1
  if first_number "SLURM_CPUS_PER_TASK$1" && [[ $answer -gt 0 ]]; then return 0; fi
  if count_nodes "$1" && nodes=$answer && [[ $((tasks % nodes)) -eq 0 ]]; then
    if [[ ${!list-} =~ ^([0-9]+)(\(x[0-9]+\))?$ ]]; then
      answer=${BASH_REMATCH[1]}
    elif [[ -n ${!list-} ]] || ! first_number "SLURM_CPUS_ON_NODE$1"; then
      answer=0
    fi
    answer=$((10#$answer * nodes / tasks))
    [[ $answer -eq 0 ]] || return 0
  fi
  answer=1
}

# read_part PART  sets `tasks` and `cpus`.
read_part() {
  count_tasks "$1"
  tasks=$answer
  [[ $tasks -gt 0 ]] || refuse "this job has no tasks (SLURM_NTASKS$1); submit with --ntasks=N"
  count_cpus "$1" "$tasks"
  cpus=$answer
}

# launch COMMAND...  sets `launched` to what starts a rank per task: mpirun, or srun where SRUN_MPI names its interface
# to MPI. A heterogeneous job has a command per part, with colons between.
launched=()
launch() {
  local tasks cpus parts=0 i group=het
  ! first_number SLURM_HET_SIZE SLURM_PACK_SIZE || parts=$answer
  if [[ -z ${SRUN_MPI-} ]]; then
    [[ $parts -lt 2 ]] || refuse "mpirun sees one part alone of a heterogeneous job; SRUN_MPI=pmix starts ranks by srun"
    read_part ''
    export SLURM_NTASKS=$tasks
    launched=(mpirun -np "$tasks" --bind-to none)  # ranks bind themselves
    [[ $EUID -ne 0 ]] || launched+=(--allow-run-as-root)
    launched+=("$@")
  elif [[ $parts -lt 2 ]]; then
    read_part ''
    launched=(srun "--mpi=$SRUN_MPI" --cpu-bind=cores -n "$tasks" -c "$cpus" "$@")
  else
    [[ -n ${SLURM_HET_SIZE-} ]] || group=pack  # as Slurm called it before version 20
    launched=(srun "--mpi=$SRUN_MPI" --cpu-bind=cores)
    for ((i = 0; i < parts; ++i)); do
      read_part "_${group^^}_GROUP_$i"
      [[ $i -eq 0 ]] || launched+=(:)
      launched+=("--$group-group=$i" -n "$tasks" -c "$cpus" "$@")
    done
  fi
}

job=${SLURM_JOB_ID:-${SLURM_JOBID-}}
[[ -n $job ]] || refuse "SLURM_JOB_ID is not set, so this is no job of Slurm: start this script with sbatch"
[[ -z ${SLURM_ARRAY_TASK_ID-} || -z ${SLURM_ARRAY_JOB_ID-} ]] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
first_number SLURM_RESTART_COUNT || answer=0
restarts=$answer
first_number REQUEUES || answer=20
requeues=$answer

# was_cancelled  whether Slurm is ending this job for another reason than its time, and sets `state`. scancel sends
# SIGTERM as well as the end of the time does, so the command ends alike. The job is COMPLETING by then; at a warning
# (--signal) or a preemption with a grace time it is still RUNNING. Where Slurm does not answer, it was not.
state=''
was_cancelled() {
  local said
  said=" $(scontrol show --oneliner job "$job" 2>/dev/null || true) "
  [[ $said =~ \ JobState=([A-Z_]+)\  ]] || return 1
  state=${BASH_REMATCH[1]}
  [[ ! $state =~ ^(RUNNING|SIGNALING)$ && $said != *" Reason=TimeLimit "* ]]  # SIGNALING: a signal is on its way
}

# put_back  the job goes into the queue again.
put_back() {
  echo "stopped after Slurm's signal; job $job goes back into the queue and will go on where it was"
  scontrol requeue "$job" || echo "Slurm does not take job $job back; submit it again, and it goes on where it was"
}

# run_and_requeue COMMAND...  ends the batch script with the command's exit code. A command that ends with 75, after
# Slurm's warning before the end of the time (--signal=B:USR1@60), puts the job back into the queue, unless it was
# cancelled: 20 times at most (REQUEUES=N: N times), since a training that needs more than --time would never end.
run_and_requeue() {
  local code=0
  "$@" &
  local pid=$!
  # A trap runs only while the shell waits, so the command is in the background.
  trap 'kill -USR1 $pid' USR1
  trap 'kill -TERM $pid' TERM
  wait "$pid" || code=$?
  # wait gives 128 + the number of a signal that was trapped; the next one gives the command's code.
  while [[ $code -gt 128 ]] && kill -0 "$pid" 2>/dev/null; do
    code=0
    wait "$pid" || code=$?
  done
  if [[ $code -gt 128 ]]; then
    code=0
    wait "$pid" || code=$?
  fi
  trap - USR1 TERM
  [[ $code -eq 75 ]] || exit "$code"
  if was_cancelled; then
    echo "stopped, since Slurm ends job $job ($state), as after scancel: it is not put back into the queue from here." \
      "Where Slurm does not do it either, as after some preemptions, submit it again: it goes on where it was"
  elif [[ $restarts -ge $requeues ]]; then
    echo "stopped after Slurm's signal, and was put back $restarts times: job $job ends here;" \
      "submit it again with a longer --time, or with REQUEUES=N for more times"
  else
    put_back
  fi
  exit 75
}
