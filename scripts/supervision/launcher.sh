# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034  # job, grace: of scripts/supervise, which sources this
# What hangs on when a training has ended: a launcher waits for ever for a daemon of its own that is out of reach, and
# so does the daemon.

is_mpirun() { [[ ${1##*/} =~ ^(mpirun|mpiexec|orterun|prterun) ]]; }

# children_of PROCESS  sets `children` to their folders in /proc, whichever of its threads started them.
children=()
children_of() {
  local file more=()
  children=()
  for file in "/proc/$1/task/"*/children; do
    { read -ra more <"$file"; } 2>/dev/null || [[ ${#more[@]} -gt 0 ]] || continue
    children+=("${more[@]/#//proc/}")
  done
}

# end_lingering  a launcher whose ranks on this machine have been gone for the seconds of --grace, or whose ranks, all
# elsewhere, have said as long ago that the training ends (76). It starts other processes than ranks first.
hung_on=false had_ranks=false last_rank=0 said_end=''
end_lingering() {
  local name why='the ranks on this machine have ended'
  { IFS= read -r name <"/proc/$job/comm"; } 2>/dev/null && is_mpirun "$name" || return 0
  children_of "$job"
  if [[ ${#children[@]} -gt 0 ]]; then
    last_rank=$SECONDS
    $had_ranks || ! grep -qsz '^PMIX\?_RANK=' "${children[@]/%//environ}" || had_ranks=true
  fi
  if $had_ranks; then
    [[ $((SECONDS - last_rank)) -ge $grace ]] || return 0
  else
    ended_by_stall || return 0
    said_end=${said_end:-$SECONDS} why='the ranks have said that the training ends'
    [[ $((SECONDS - said_end)) -ge $grace ]] || return 0
  fi
  say "$why, and their launcher, process $job, has not: it is killed"
  hung_on=true
  kill -KILL "$job" 2>/dev/null || true
}

# removal_of FOLDER  words for a host's shell, which end daemons of launchers that had FOLDER (it is a word of their
# command, and of grep's) and remove their files.
removal_of() {
  local session
  session=$(quoted "$1/session")
  echo "for p in \$(grep -lszxF $session /proc/[0-9]*/cmdline); do p=\${p#/proc/};" \
    "kill -KILL \${p%/cmdline} 2>/dev/null; done; rm -rf $session; rmdir $(quoted "$1") 2>/dev/null || true"
}
