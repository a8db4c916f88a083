# shellcheck shell=bash
# shellcheck disable=SC2154  # label, vms, results, work: of the script that sources this
# What the scripts for clouds share: flags, saying and running commands, the work on the VMs.
# A script sets `on N COMMAND` (run on VM N), `copy_to N FILE` and `fetch N FILE TO`.

name=${0##*/}
stop() { echo "$name: $1" >&2; exit 2; }

dry_run=false
# Says a command and runs it, unless this is a dry run.
run() {
  printf '+ %s\n' "$(printf '%q ' "$@")" >&2
  $dry_run || "$@"
}
# The same for a command whose output is wanted, which a dry run makes up: ask MADE_UP COMMAND...
ask() {
  local made_up=$1
  shift
  printf '+ %s\n' "$(printf '%q ' "$@")" >&2
  if $dry_run; then echo "$made_up"; else "$@"; fi
}

# Reads flags until `--`; the rest are the sweep's, or after the word `train` a training's. --cpu '' asks for no kind of
# processor.
read_cloud_flags() {
  # shellcheck disable=SC2034  # read_flags reads it
  may_be_empty=--cpu
  read_flags "$@"
  set -- "${rest[@]}"
  [[ ${1-} == -- ]] || wrong_use "what shall run? ... -- --np 1,2,4 --batch 128,256"
  shift
  what=sweep
  if [[ ${1-} == train ]]; then
    what=train
    shift
  fi
  words=("$@")
  [[ " ${words[*]} " != *" --out"* ]] || stop "name the folder for results with --results, before the --"
  [[ $vms =~ ^[1-9][0-9]?$ ]] || stop "--vms $vms: a number from 1 to 99 is allowed"
  [[ $label =~ ^[a-z][a-z0-9-]{0,40}$ ]] || stop "--name $label: small letters, digits and hyphens are allowed"
  results=${results:-results/$label}
  [[ ! -e $results || ( $what == train && -r $results/metrics.jsonl ) ]] ||
    stop "$results is there already; name another folder with --results"
  label=$label-$(date +%m%d-%H%M%S)  # so that nothing of another run is ever deleted
}

# Calls a command until it succeeds; a VM that has just started refuses connections.
patiently() {
  local tries=40
  $dry_run && tries=1
  until "$@"; do
    ((--tries > 0)) || stop "gave up: $*"
    sleep 10
  done
}

# Copies this checkout's last commit to every VM and builds it there.
install_program() {
  local vm
  run git archive --format=tar.gz --prefix=cputrain/ -o "$work/cputrain.tar.gz" HEAD
  for ((vm = 0; vm < vms; ++vm)); do
    patiently on "$vm" true
    copy_to "$vm" "$work/cputrain.tar.gz"
    on "$vm" "tar xzf cputrain.tar.gz && cputrain/scripts/build"
  done
}

# VMs that start ranks on each other: one key for all of them, and a file that names them. Arguments:
# addresses inside the cloud's network.
join_vms() {
  local vm
  [[ $vms -gt 1 ]] || return 0
  run ssh-keygen -q -t ed25519 -N '' -f "$work/id_ed25519"
  $dry_run || printf '%s\n' "$@" | sed 's/$/ slots=SLOTS/' >"$work/hosts"
  for ((vm = 0; vm < vms; ++vm)); do
    for file in id_ed25519 id_ed25519.pub hosts; do copy_to "$vm" "$work/$file"; done
    on "$vm" "mkdir -p .ssh && chmod 700 .ssh && cat id_ed25519.pub >>.ssh/authorized_keys && \
mv id_ed25519 .ssh/ && chmod 600 .ssh/id_ed25519 && printf 'StrictHostKeyChecking accept-new\n' >>.ssh/config && \
sed -i \"s/SLOTS/\$(nproc)/\" hosts && mv hosts cputrain/"
  done
}

# Words of mpirun for several VMs, whose names are in the file `hosts`.
over_tcp="--use-hwthread-cpus --mca pml ob1 --mca btl tcp,vader,self"

# Runs a command in the program's folder on VM 0, again where the connection breaks (ssh: 255): what it began works on,
# and flock waits for it.
run_there() {
  local code=0 tries=20
  local command="cd cputrain && flock work.lock $1"
  on 0 "$command" || code=$?
  while [[ $code -eq 255 ]] && ((--tries > 0)); do
    sleep 30
    code=0
    on 0 "$command" || code=$?
  done
  return "$code"
}

# The sweep goes on where it was; a training, too, through scripts/supervise, which ends it with 75 in time where the
# cloud wants the VM back. What a training of that name has left here goes with it.
run_work() {
  local launch="mpirun --use-hwthread-cpus --bind-to hwthread" flags=("${words[@]}")
  if [[ $what == sweep ]]; then
    flags+=(--out work)
    [[ $vms -eq 1 ]] ||
      flags+=(--launcher "mpirun --hostfile hosts --map-by slot:PE={threads} --bind-to hwthread $over_tcp")
    run_there "./cputrain sweep $(quoted "${flags[@]}")"
    return
  fi
  if [[ -e $results ]]; then
    run tar czf "$work/work.tar.gz" -C "$results" .
    copy_to 0 "$work/work.tar.gz"
    on 0 "mkdir cputrain/work && tar xzf work.tar.gz -C cputrain/work"
  fi
  [[ $vms -eq 1 ]] || launch="mpirun --hostfile hosts --bind-to hwthread $over_tcp"
  run_there "scripts/supervise --watch $name -- $launch ./cputrain train $(quoted "${flags[@]}" --out work)"
}

fetch_results() {
  local leave_out="--exclude '*.safetensors' "  # weights of a sweep's trainings
  [[ $what == sweep ]] || leave_out=''
  on 0 "tar czf work.tar.gz -C cputrain ${leave_out}work"
  fetch 0 work.tar.gz "$work/work.tar.gz"
  run mkdir -p "$results"
  run tar xzf "$work/work.tar.gz" -C "$results" --strip-components=1
  if [[ $what == sweep ]]; then
    echo "results: $results; ./cputrain report $results draws them" >&2
  else
    echo "results: $results; the same command goes on with a training that is not done" >&2
  fi
}
