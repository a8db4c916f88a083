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
# The machine was started anew, or this is a container of it, or another one of that name: nobody can tell.
was_of_this_name() { [[ ${was[host]-} == "$(hostname)" && ${was[boot]-} != "$boot" ]]; }

is_work_folder() { [[ $1 =~ ^/.*/cputrain-supervise\.[A-Za-z0-9]{6}$ && $1 != *..* ]]; }

# shows_all_locks FOLDER  whether locks in it are those of all processes that can be at work there: in containers, too,
# and not on other machines.
shows_all_locks() {
  [[ $(stat -f -c %T -- "$1") =~ ^(ext2/ext3|xfs|btrfs|f2fs|zfs|bcachefs|jfs|tmpfs|ramfs|overlayfs)$ ]]
}

# remove_left FOLDER  what a supervise of this user left that is dead and whose training is: both hold a lock on it.
remove_left() {
  is_work_folder "$1" && [[ -d $1 && ! -L $1 && -O $1 && $1 != "$work" ]] && shows_all_locks "$1" || return 0
  # One without a record was killed as it began, or begins just now and is about to lock it.
  [[ -f $1/lock && (-f $1/owner || -n $(find "$1/lock" -mmin +60)) ]] || return 0
  (! flock -n 7 || rm -rf "$1") 7<"$1/lock" || true
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

# ask_elsewhere  the record is of another host or container. Fails where it cannot be asked.
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
        return 1
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
      left_there=${was[folder]-}
    elif ! was_of_this_name && ask_elsewhere; then
      left_there=${was[folder]-}
    fi
    is_work_folder "$left_there" || left_there=''
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
