# shellcheck shell=bash
# Sourced by the batch scripts. Runs a command that ends with 75 after Slurm's warning before the end of the time
# (--signal=B:USR1@60), and puts the job back into the queue then. It does so 20 times at most (REQUEUES=N: N times),
# since a training that needs more than --time would never end.

# run_and_requeue COMMAND...  ends the batch script with the command's exit code
run_and_requeue() {
  local code=0 job=$SLURM_JOB_ID
  [[ -z ${SLURM_ARRAY_TASK_ID-} ]] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
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
  if [[ $code -eq 75 && ${SLURM_RESTART_COUNT:-0} -ge ${REQUEUES:-20} ]]; then
    echo "stopped after Slurm's signal, and was put back ${SLURM_RESTART_COUNT:-0} times: job $job ends here;" \
      "submit it again with a longer --time, or with REQUEUES=N for more times"
  elif [[ $code -eq 75 ]]; then
    echo "stopped after Slurm's signal; job $job goes back into the queue and will go on where it was"
    scontrol requeue "$job"
  fi
  exit "$code"
}
