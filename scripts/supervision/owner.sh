# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034  # work, out, job: of scripts/supervise, which sources this
# One supervise per run folder. Which it is stands in the run folder's file .supervise and in the script's temporary
# folder: where SIGKILL ended it, the next one takes its training over and removes what it left.

# start_of PID  when the process began, in clock ticks since the machine did: no later one of its number has that.
# Fails where there is none.
start_of() {
  local line fields
  { IFS= read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  read -ra fields <<<"${line##*) }"
  [[ ${fields[0]} != [ZX] ]] || return 1
  echo "${fields[19]}"
}
is_alive() { [[ -n $1 && $(start_of "$1") == "$2" ]]; }

# Process numbers mean the same for those who have both alike.
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null || true)
numbers=$(readlink /proc/self/ns/pid || true)

# write_record FILE [PID]  PID: the training's launcher. The file takes its name at once, and no link is followed. A
# full disk stops no training.
write_record() {
  local file=$1 training=${2-}
  rm -f "$file.tmp" 2>/dev/null || return 0
  if (
    set -C
    {
      echo "host $(hostname)"
      echo "boot $boot"
      echo "numbers $numbers"
      echo "supervise $$ $(start_of $$)"
      [[ -z $training ]] || echo "training $training $(start_of "$training")"
      echo "folder $work"
    } >"$file.tmp"
  ) 2>/dev/null; then
    mv -fT "$file.tmp" "$file" 2>/dev/null || true
  fi
}
record() {
  write_record "$work/owner" "$@"
  ! $claimed || write_record "$out/.supervise" "$@"
}

# read_record FILE  fails where there is none.
declare -A was=()
read_record() {
  local key value
  was=()
  [[ -f $1 && ! -L $1 && -r $1 ]] || return 1
  while read -r key value; do was[$key]=$value; done <"$1"
  [[ ${was[supervise]-} =~ ^[0-9]+\ [0-9]+$ && ${was[training]-1 1} =~ ^[0-9]+\ [0-9]+$ ]]
}
was_alive() { [[ -n ${was[$1]-} ]] && is_alive "${was[$1]%% *}" "${was[$1]#* }"; }  # supervise or training
was_here() { [[ ${was[boot]-} == "$boot" && ${was[numbers]-} == "$numbers" ]]; }
# Nothing outlives the machine's restart.
was_before() { [[ ${was[host]-} == "$(hostname)" && ${was[boot]-} != "$boot" ]]; }
is_over() { was_before || { was_here && ! was_alive supervise && ! was_alive training; }; }

is_work_folder() { [[ $1 =~ ^/.*/cputrain-supervise\.[A-Za-z0-9]{6}$ && $1 != *..* ]]; }

# remove_left FOLDER  what a dead supervise left, of this user alone.
remove_left() {
  is_work_folder "$1" && [[ -d $1 && ! -L $1 && -O $1 && $1 != "$work" ]] || return 0
  if [[ ! -e $1/owner ]]; then  # killed as it began, or it begins just now
    [[ -z $(find "$1" -maxdepth 0 -mmin +60) ]] || rmdir "$1" 2>/dev/null || true
  elif (read_record "$1/owner" && is_over); then
    rm -rf "$1"
  fi
}
remove_all_left() {
  local folder
  for folder in "${TMPDIR:-/tmp}"/cputrain-supervise.*; do remove_left "$folder"; done
}

# alive_there KEY  asks the host of the record; 255 where it cannot be asked.
alive_there() {
  local pid=${was[$1]%% *} start=${was[$1]#* }
  is_host "${was[host]}" || return 255
  ask_host "${was[host]}" "s=\$(cat /proc/$pid/stat) && set -- \${s##*) } && [ \"\${20}\" = $start ]"
}

# refuse_other  where another supervise's training may not be taken over.
refuse_other() {
  say "$1 is at work in $out; end it there with 'kill -USR1 ${was[$2]%% *}', or name another --out"
  exit 2
}

# ask_elsewhere  the record is of another host or container.
ask_elsewhere() {
  local key code
  for key in supervise training; do
    [[ -n ${was[$key]-} ]] || continue
    code=0
    alive_there "$key" || code=$?
    case $code in
      0) refuse_other "the $key of process ${was[$key]%% *} on ${was[host]}" "$key" ;;
      255)
        say "whether the $key of process ${was[$key]%% *} on ${was[host]-?} still works in $out cannot be asked;" \
          "the lock of the run folder keeps two trainings apart"
        return
        ;;
    esac
  done
}

# claim  makes this the supervise of the run folder. Sets `job` to a training to take over. Of two that start together
# the lock lets one through; the file system may have none.
claimed=false made_out=false
claim() {
  [[ -d $out ]] || { mkdir -p -- "$out" 2>/dev/null && made_out=true; } || return 0  # the training says why
  { exec 9<"$out"; } 2>/dev/null || return 0
  flock -w 10 9 2>/dev/null || true
  if read_record "$out/.supervise"; then
    if was_here; then
      ! was_alive supervise ||
        refuse_other "another supervise, process ${was[supervise]%% *} on ${was[host]}," supervise
      if [[ -n ${was[training]-} ]] && was_alive training; then
        job=${was[training]%% *}
        { [[ -O $out/.supervise ]] && kill -0 "$job" 2>/dev/null; } ||
          refuse_other "another user's training, process $job on ${was[host]}," training
      fi
    elif ! was_before; then
      ask_elsewhere
    fi
  fi
  claimed=true
  record ${job:+"$job"}
  exec 9<&-
}

# take_over  waits for the end of a training that is no child: its exit code is not known. The start that follows
# finds out whether it was done.
take_over() {
  say "the training of a supervise that is gone still runs: process $job on ${was[host]}; it is taken over"
  start_watchers
  wait_for_job "${was[training]#* }"
  end_watchers
  job='' code=1
  say "the training that was taken over has ended"
}

disown_folder() {
  ! $claimed || rm -f "$out/.supervise" "$out/.supervise.tmp" 2>/dev/null || true
  ! $made_out || rmdir "$out" 2>/dev/null || true
}
