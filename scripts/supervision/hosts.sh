# shellcheck shell=bash
# shellcheck disable=SC2154  # command, hostfile, work and others: of scripts/supervise, which sources this
# The hosts of the command: which answer through ssh, the command for those alone, and what watches them.

# value_of FLAG...  what the command gives a flag, by any of its names; fails where it does not.
value_of() {
  local i name
  for ((i = 0; i < ${#command[@]}; ++i)); do
    for name; do
      if [[ ${command[i]} == "$name" ]]; then printf '%s\n' "${command[i + 1]-}"; return; fi
      if [[ $name == --* && ${command[i]} == "$name="* ]]; then printf '%s\n' "${command[i]#*=}"; return; fi
    done
  done
  return 1
}

# is_host NAME  whether ssh takes it for a host: not for a flag, and no shell on the way for more than a word.
is_host() { [[ $1 =~ ^([A-Za-z0-9_.+][A-Za-z0-9_.+-]*@)?[][A-Za-z0-9_.+:%][][A-Za-z0-9_.+:%-]*$ ]]; }

hosts_by=nothing hosts=() slots=()  # of the command, in order; slots are empty where nothing says how many
add_host() {
  is_host "$1" || wrong_use "the host $1: letters, digits and . _ : % @ - are allowed, and no - at the beginning"
  hosts+=("$1") slots+=("$2")
}
read_hosts() {
  local line host word count host_list
  [[ -n $hostfile ]] || hostfile=$(value_of --hostfile -hostfile --machinefile -machinefile) || true
  if [[ -n $hostfile ]]; then
    hosts_by='file'
    [[ -r $hostfile ]] || wrong_use "the hostfile $hostfile cannot be read"
    while read -r line; do
      line=${line%%#*}
      read -r host _ <<<"$line" || true
      [[ -n $host ]] || continue
      count=''
      [[ ! $line =~ [[:space:]]slots[[:space:]]*=[[:space:]]*([0-9]+) ]] || count=${BASH_REMATCH[1]}
      add_host "$host" "$count"
    done < <(cat -- "$hostfile"; echo)
  elif host_list=$(value_of --host -host -H); then
    hosts_by='list'
    for word in ${host_list//,/ }; do
      if [[ $word == *:* ]]; then add_host "${word%%:*}" "${word#*:}"; else add_host "$word" 1; fi
    done
  fi
}

is_here() { [[ $1 == localhost || $1 == 127.* || $1 == ::1 || $1 == "$(hostname)" || $1 == "$(hostname -s)" ]]; }
ssh_flags=(-n -o BatchMode=yes -o ConnectTimeout=5)
ask_host() { timeout 20 ssh "${ssh_flags[@]}" -- "$1" "$2" >/dev/null 2>&1; }

# which_answer  sets `answers` to those hosts that do, `lost` to the others. What launchers left of the last start is
# ended and removed there, and what an earlier supervise of this run folder left, if that is known to be gone.
answers=() lost=()
which_answer() {
  local i pids=() clean
  clean=$(removal_of "$work")
  [[ -z $left_there ]] || clean+="; $(removal_of "$left_there")"
  for i in "${!hosts[@]}"; do
    is_here "${hosts[i]}" && { pids+=(''); continue; }
    ask_host "${hosts[i]}" "$clean" 8<&- &
    pids+=($!)
  done
  answers=() lost=()
  for i in "${!hosts[@]}"; do
    if [[ -z ${pids[i]} ]] || wait "${pids[i]}"; then answers+=("$i"); else lost+=("${hosts[i]}"); fi
  done
}

# replace NAMES VALUE  the value of a flag in `start`, by any of the names; at the command's end of the launcher's
# words (after mpirun itself) where it is not there.
replace() {
  local names=" $1 " value=$2 i
  for ((i = 0; i < ${#start[@]}; ++i)); do
    if [[ $names == *" ${start[i]} "* ]]; then start[i + 1]=$value; return; fi
    if [[ ${start[i]} == --*=* && $names == *" ${start[i]%%=*} "* ]]; then start[i]=${start[i]%%=*}=$value; return; fi
  done
  start=("${start[0]}" "${1%% *}" "$value" "${start[@]:1}")
}

# ranks_left  how many ranks the hosts that answer take of those that the command asks for.
ranks_left() {
  local asked=$1 i all=0 left=0 known=true
  for i in "${!hosts[@]}"; do
    [[ -n ${slots[i]} ]] || known=false
    all=$((all + ${slots[i]:-1}))
  done
  for i in "${answers[@]}"; do left=$((left + ${slots[i]:-1})); done
  if $known && [[ $asked -le $all ]]; then
    echo $((asked < left ? asked : left))
  else  # more ranks than slots, or nothing tells how many there are: as many as before on each host
    left=$((asked * left / all))
    echo $((left > 0 ? left : 1))
  fi
}

# prepare_start  sets `start`, the command for the hosts that answer, and its `ranks`; fails where no host does.
start=()
prepare_start() {
  start=("${command[@]}") ranks=$all_ranks
  [[ $hosts_by != file ]] || replace "--hostfile -hostfile --machinefile -machinefile" "$hostfile"
  which_answer
  [[ ${#lost[@]} -eq 0 ]] || use_answering || return 1
  use_ranks
}
use_answering() {
  local i
  [[ ${#answers[@]} -gt 0 ]] || { say "no host answers: ${hosts[*]}"; return 1; }
  : >"$work/hosts"
  for i in "${answers[@]}"; do
    echo "${hosts[i]}${slots[i]:+ slots=${slots[i]}}" >>"$work/hosts"
  done
  if [[ $hosts_by == file ]]; then
    replace "--hostfile -hostfile --machinefile -machinefile" "$work/hosts"
  else
    replace "--host -host -H" "$(sed 's/ slots=/:/' "$work/hosts" | paste -sd,)"
  fi
  [[ -z $ranks ]] || ranks=$(ranks_left "$ranks")
  say "without ${lost[*]}, which did not answer: ${#answers[@]} of ${#hosts[@]}" \
    "hosts${ranks:+, $ranks of $all_ranks ranks}"
}

# ask_the_lost  once in a cool-down, while the training runs without them: the hosts that answer by now get into the
# file `back`, and so do lost ranks, which cannot be asked. The next cool-down is twice as long, up to an hour: a host
# may come and go.
asked_lost=0
ask_the_lost() {
  [[ ${#lost[@]} -gt 0 || -n $wanted ]] || return 0
  [[ $cool_down -gt 0 && $((SECONDS - asked_lost)) -ge $cool_down ]] || return 0
  asked_lost=$SECONDS
  [[ $cool_down -ge 3600 ]] || cool_down=$((2 * cool_down < 3600 ? 2 * cool_down : 3600))
  local host
  [[ -z $wanted ]] || echo "all ranks are tried again" >>"$work/back"
  for host in "${lost[@]}"; do
    { ! ask_host "$host" true || echo "$host answers again" >>"$work/back"; } 8<&- &
  done
}

# What watches hosts ends with this script, however that ends.
watchers=()
watch_with() { setpriv --pdeathsig TERM -- "$@" 2>/dev/null 8<&- & watchers+=($!); }
start_watchers() {
  watchers=()
  [[ $watch != none ]] || return 0
  # One that is ended as it begins removes no file.
  watch_with env "TMPDIR=$work" "$root/scripts/cloud/preemption" "$watch" >"$work/notice"
  local i
  for i in "${answers[@]}"; do
    is_here "${hosts[i]}" && continue
    watch_with ssh "${ssh_flags[@]}" -- "${hosts[i]}" "exec $(quoted "$root/scripts/cloud/preemption") $watch" \
      >"$work/notice-$i"
  done
}
end_watchers() {
  [[ ${#watchers[@]} -eq 0 ]] || kill "${watchers[@]}" 2>/dev/null || true
  watchers=()
}
