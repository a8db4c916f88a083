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

# Reads flags until `--`; the rest are the sweep's. `allowed` maps a flag to the variable it sets,
# `switches` those without a value; --cpu '' asks for no kind of processor.
read_flags() {
  while [[ $# -gt 0 && $1 != -- ]]; do
    if [[ -n ${switches[$1]-} ]]; then
      printf -v "${switches[$1]}" true
      shift
      continue
    fi
    [[ -n ${allowed[$1]-} ]] || stop "unknown flag $1; allowed are ${!allowed[*]} ${!switches[*]}, then -- and flags of cputrain sweep"
    [[ $# -gt 1 && ( -n $2 || $1 == --cpu ) ]] || stop "$1 needs a value"
    printf -v "${allowed[$1]}" '%s' "$2"
    shift 2
  done
  [[ ${1-} == -- ]] || stop "what shall run? ... -- --np 1,2,4 --batch 128,256"
  shift
  sweep=("$@")
  [[ " ${sweep[*]} " != *" --out"* ]] || stop "name the folder for results with --results, before the --"
  [[ $vms =~ ^[1-9][0-9]?$ ]] || stop "--vms $vms: a number from 1 to 99 is allowed"
  [[ $label =~ ^[a-z][a-z0-9-]{0,40}$ ]] || stop "--name $label: small letters, digits and hyphens are allowed"
  results=${results:-results/$label}
  [[ ! -e $results ]] || stop "$results is there already; name another folder with --results"
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

# Runs the sweep on VM 0, where it goes on where it was if the connection breaks (ssh: 255).
run_sweep() {
  local flags=("${sweep[@]}" --out sweep) code=0 tries=20
  if [[ $vms -gt 1 ]]; then
    flags+=(--launcher "mpirun --hostfile hosts --use-hwthread-cpus --map-by slot:PE={threads} --bind-to hwthread --mca pml ob1 --mca btl tcp,vader,self")
  fi
  local command
  # A sweep whose connection broke works on; flock waits for it.
  command="cd cputrain && flock sweep.lock ./cputrain sweep $(printf '%q ' "${flags[@]}")"
  on 0 "$command" || code=$?
  while [[ $code -eq 255 ]] && ((--tries > 0)); do
    sleep 30
    code=0
    on 0 "$command" || code=$?
  done
  return "$code"
}

fetch_results() {
  on 0 "tar czf sweep.tar.gz -C cputrain --exclude '*.safetensors' sweep"
  fetch 0 sweep.tar.gz "$work/sweep.tar.gz"
  run mkdir -p "$results"
  run tar xzf "$work/sweep.tar.gz" -C "$results" --strip-components=1
  echo "results: $results; ./cputrain report $results draws them" >&2
}
